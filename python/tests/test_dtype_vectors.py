"""Conversions from float64, derived in ways that have nothing in common with the vectors' truth."""

import json

import ml_dtypes
import numpy as np
import pytest
from conversion_vectors import (
    NARROW_DTYPES,
    conversion_inputs,
    decoded_values,
    digest,
    dtype_vectors,
    encoded_digest,
    nearest_patterns,
)
from write_vectors import DTYPE_PATH, render

from gpuemu._arrays.dtypes import encode, numpy_dtype

VECTORS = json.loads(DTYPE_PATH.read_text(encoding="utf-8"))
NARROW = {vector["dtype"]: vector for vector in VECTORS["narrow"]}


def patterns_of(array):
    return array.view(f"u{array.dtype.itemsize}")


def rounded_to_odd(values):
    """float32 values that remember in their last bit whether anything was cut off.

    A second rounding to a format at least two bits narrower is then the only one that counts.
    """
    with np.errstate(over="ignore"):
        nearest = values.astype(np.float32)
    patterns = nearest.view(np.uint32).copy()
    patterns -= np.abs(nearest.astype(np.float64)) > np.abs(values)
    patterns |= nearest.astype(np.float64) != values
    return patterns.view(np.float32)


def test_the_vectors_on_disk_are_those_that_the_writer_makes():
    assert render(dtype_vectors()) == DTYPE_PATH.read_text(encoding="utf-8")


@pytest.mark.parametrize("dtype", NARROW_DTYPES)
def test_decoding(dtype):
    assert digest(decoded_values(dtype)) == NARROW[dtype]["decoded"]


@pytest.mark.parametrize("dtype", NARROW_DTYPES)
def test_encoding_by_the_mirror(dtype):
    inputs = conversion_inputs(dtype)
    assert len(inputs) == NARROW[dtype]["input_count"]
    assert digest(inputs) == NARROW[dtype]["inputs"]
    assert encoded_digest(patterns_of(encode(inputs, dtype)), dtype) == NARROW[dtype]["encoded"]


@pytest.mark.parametrize("dtype", NARROW_DTYPES)
def test_encoding_by_numpy_and_ml_dtypes_after_rounding_to_odd(dtype):
    with np.errstate(over="ignore"):
        converted = rounded_to_odd(conversion_inputs(dtype)).astype(numpy_dtype(dtype))
    assert encoded_digest(patterns_of(converted), dtype) == NARROW[dtype]["encoded"]


def test_numpy_rounds_float64_to_float16_once():
    with np.errstate(over="ignore"):
        converted = conversion_inputs("float16").astype(np.float16)
    assert encoded_digest(patterns_of(converted), "float16") == NARROW["float16"]["encoded"]


def test_a_value_just_above_a_tie_is_not_rounded_twice():
    above = np.nextafter(np.array([1.0 + 2.0**-8]), 2.0)
    assert encode(above, "bfloat16").astype(np.float64) == 1.0 + 2.0**-7
    assert nearest_patterns(above, "bfloat16") == patterns_of(np.array([1.0 + 2.0**-7], ml_dtypes.bfloat16))


def test_float32():
    vector = VECTORS["float32"][0]
    inputs = conversion_inputs("float32")
    assert len(inputs) == vector["input_count"]
    assert digest(inputs) == vector["inputs"]
    assert encoded_digest(patterns_of(encode(inputs, "float32")), "float32") == vector["encoded"]
