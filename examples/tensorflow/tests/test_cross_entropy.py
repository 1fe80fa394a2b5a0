"""The loss over shapes, dtypes and values that break kernels."""

import pytest
from kernels.cross_entropy import cross_entropy

import gpuemu


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_cross_entropy(dtype):
    gpuemu.check("cross_entropy", cross_entropy, framework="tensorflow", dtypes=[dtype], cases=40)
