"""CUDA C++ in the PTX machine, compiled by what is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from framework_packages import require

import gpuemu
from gpuemu.errors import KernelError, KernelFindingsError

require("triton")  # It is there where the compilers are.

ROW_SUM = """
__global__ void row_sum(float *out, const float *in, int columns) {
    extern __shared__ float partial[];
    const float *row = in + (long long)blockIdx.x * columns;
    float sum = 0.0f;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) sum += row[column];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}
"""


def matrix() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((5, 200)).astype(np.float32)


def test_a_kernel_is_compiled_from_its_text() -> None:
    kernel = gpuemu.cuda.Kernel(ROW_SUM, "row_sum", outputs=[0])
    assert kernel.name == "_Z7row_sumPfPKfi" and kernel.producer.split()[0] in ("nvcc", "NVRTC")
    rows, out = matrix(), np.zeros(5, np.float32)
    launch = kernel[5, 128, 512](out, rows, 200)
    assert np.allclose(out, rows.sum(axis=1), rtol=1e-5, atol=1e-5)
    assert launch.findings == []


def test_a_missing_barrier_is_found_at_its_line(tmp_path: Path) -> None:
    source = tmp_path / "row_sum.cu"
    source.write_text(ROW_SUM.replace("sum;\n    __syncthreads();", "sum;\n"))
    with pytest.raises(KernelFindingsError, match="race") as caught:
        gpuemu.cuda.Kernel(source)[5, 128, 512](np.zeros(5, np.float32), matrix(), 200)
    assert {finding.place.line for finding in caught.value.findings} <= {7, 10}
    assert all(finding.place.file.endswith("row_sum.cu") for finding in caught.value.findings)


def test_too_little_shared_memory_is_found() -> None:
    with pytest.raises(KernelFindingsError, match="out_of_bounds|unmapped"):
        gpuemu.cuda.Kernel(ROW_SUM)[5, 128, 256](np.zeros(5, np.float32), matrix(), 200)


def test_what_does_not_compile_says_why() -> None:
    with pytest.raises(KernelError, match="no_such_name") as caught:
        gpuemu.cuda.Kernel("__global__ void broken() { no_such_name(); }")
    assert caught.value.code == "NotCompiled"
    with pytest.raises(KernelError, match="absent.cu is not there"):
        gpuemu.cuda.Kernel("absent.cu")
