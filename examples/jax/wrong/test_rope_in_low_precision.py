"""Nothing is wrong in float32; bfloat16 is another matter."""

import pytest
from rope_in_low_precision import rope

import gpuemu

PRECISION = gpuemu.Precision(flush_to_zero=True)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rope(dtype):
    gpuemu.check("rope", rope, framework="jax", dtypes=[dtype], precision=PRECISION, cases=20, budget=2000)
