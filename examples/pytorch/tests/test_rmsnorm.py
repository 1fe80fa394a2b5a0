"""The norm and its gradients, over shapes, layouts, dtypes and values that break kernels."""

import pytest
from kernels.rmsnorm import rmsnorm

import gpuemu


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_forward(dtype):
    gpuemu.check("rmsnorm", rmsnorm, framework="pytorch", dtypes=[dtype], cases=40)


def test_backward():
    gpuemu.check("rmsnorm", rmsnorm, framework="pytorch", check_backward=True, cases=15)
