"""The embedding over shapes, dtypes and values that break kernels."""

import pytest
from kernels.rope import rope

import gpuemu

# XLA makes zeros of subnormal numbers on a CPU, as many kernels do on a GPU: a kernel declares it.
PRECISION = gpuemu.Precision(flush_to_zero=True)


# JAX compiles for every new shape: few cases, and small ones, keep this quick.
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rope(dtype):
    gpuemu.check("rope", rope, framework="jax", dtypes=[dtype], precision=PRECISION, cases=20, budget=2000)
