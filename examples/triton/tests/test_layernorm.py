"""The kernel as Triton compiles it, in the PTX machine: no GPU, and every access checked."""

import pytest
from kernels.layernorm import layernorm

import gpuemu


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_layernorm(dtype):
    with gpuemu.triton.emulate(outputs=["out_ptr"]):
        gpuemu.check("layernorm", layernorm, dtypes=[dtype], cases=20, budget=4000, repeats=20)
