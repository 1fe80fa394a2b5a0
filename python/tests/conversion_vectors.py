"""Vectors of conversions between float64 and the other floating-point dtypes.

The truth of a narrow format is found without any rounding: its values are compared with the
midpoints between them, which are float64 numbers. Converting with `ml_dtypes` would not do, because
it takes float64 through float32 and so rounds twice.
"""

from __future__ import annotations

import hashlib
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from gpuemu import rng
from gpuemu._arrays.dtypes import FLOAT_FORMATS, FloatFormat

Reals = npt.NDArray[np.float64]

NARROW_DTYPES = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")

CONVERSION_WORDS = 20_000

FIXED_INPUTS = (
    0x0000_0000_0000_0001,  # the smallest float64
    0x0000_0000_0000_0003,
    0x0008_0000_0000_0000,  # a subnormal float64
    0x000F_FFFF_FFFF_FFFF,  # the largest subnormal
    0x0010_0000_0000_0000,  # the smallest normal
    0x3CA0_0000_0000_0000,
    0x47EF_FFFF_DFFF_FFFF,  # just below, at and above the edge of overflow of float32,
    0x47EF_FFFF_EFFF_FFFF,
    0x47EF_FFFF_F000_0000,
    0x47EF_FFFF_F000_0001,
    0x7E37_E43C_8800_759C,  # about 1e300
    0x7FEF_FFFF_FFFF_FFFF,  # the largest finite
    0x7FF0_0000_0000_0000,  # infinity
)

NARROW_DESCRIPTION = [
    "The inputs of `encoded` are, in this order:",
    "1. for every finite pattern p without sign, ascending from 0: its value v(p); the midpoint of v(p) and"
    " v(p+1); the float64 below that midpoint; the float64 above it. For the largest p, v(p+1) is the value"
    " that the next pattern would have if it were a number like the others.",
    "2. the bit patterns `fixed_inputs`.",
    "3. the negatives of all of 1 and 2, in the same order.",
    "4. `word_count` words of the stream of seed 0 and domain `conversion/<dtype>`, read as bit patterns"
    " of float64, without those that are NaN.",
    "5. `word_count` further words of that stream, whose exponent field e is replaced by"
    " 1023 + lowest + e mod span, where lowest = min_exponent - mantissa_bits - 2 and"
    " span = max_exponent + 2 - lowest.",
    "An encoded pattern that is a NaN is replaced by `nan` before hashing. `decoded` is the SHA-256 of the"
    " values of all patterns in ascending order, as float64, where a NaN is 0x7ff8000000000000.",
]

FLOAT32_DESCRIPTION = [
    "The inputs of `encoded` are, in this order:",
    "1. for `word_count` words w of the stream of seed 0 and domain `conversion/float32`, with"
    " p = w mod 0x7f800000: the float32 value v(p); the midpoint of v(p) and v(p+1), where"
    " v(0x7f800000) = 2^128; the float64 below that midpoint; the float64 above it.",
    "2. the bit patterns `fixed_inputs`.",
    "3. the negatives of all of 1 and 2, in the same order.",
    "4. and 5. as for the narrow dtypes, from the same stream.",
]


def digest(array: npt.NDArray[Any]) -> str:
    """Return the SHA-256 of an array's bytes, which are little-endian on every machine supported."""
    return hashlib.sha256(array.tobytes()).hexdigest()


def decoded_values(dtype: str) -> Reals:
    """Return the value of every bit pattern of a 16-bit or 8-bit dtype, in order."""
    element_type = np.dtype(dtype) if dtype == "float16" else np.dtype(getattr(ml_dtypes, dtype))
    patterns = np.arange(1 << (8 * element_type.itemsize)).astype(f"u{element_type.itemsize}")
    with np.errstate(invalid="ignore"):
        values = patterns.view(element_type).astype(np.float64)
    return np.where(np.isnan(values), np.nan, values)


def magnitudes(dtype: str) -> Reals:
    """Return the finite magnitudes of a dtype, ascending, and the one that would come next."""
    layout = FLOAT_FORMATS[dtype]
    finite = decoded_values(dtype)[: layout.overflow_bits]
    return np.append(finite, 2.0 * finite[-1] - finite[-2])


def with_midpoints(lower: Reals, upper: Reals) -> Reals:
    """Return every lower value, the midpoint to its upper one, and the neighbours of that."""
    midpoints = (lower + upper) / 2.0
    below, above = np.nextafter(midpoints, -np.inf), np.nextafter(midpoints, np.inf)
    return np.stack([lower, midpoints, below, above], axis=1).reshape(-1)


def stream_inputs(stream: rng.Stream, layout: FloatFormat) -> Reals:
    """Return float64 values of all magnitudes, then of the magnitudes that the format covers."""
    words = np.array([stream.next_word() for _ in range(2 * CONVERSION_WORDS)], dtype=np.uint64)
    anywhere = words[:CONVERSION_WORDS].view(np.float64)
    nearby = words[CONVERSION_WORDS:]
    lowest = layout.min_exponent - layout.mantissa_bits - 2
    span = layout.max_exponent + 2 - lowest
    fields = (nearby >> np.uint64(52)) & np.uint64(0x7FF)
    fields = np.uint64(1023 + lowest) + fields % np.uint64(span)
    nearby = (nearby & ~np.uint64(0x7FF << 52)) | (fields << np.uint64(52))
    return np.concatenate([anywhere[~np.isnan(anywhere)], nearby.view(np.float64)])


def conversion_inputs(dtype: str) -> Reals:
    """Return the float64 values that the vectors convert to a dtype, as described in the file."""
    stream = rng.Stream(0, f"conversion/{dtype}")
    if dtype == "float32":
        words = np.array([stream.next_word() for _ in range(CONVERSION_WORDS)], dtype=np.uint64)
        patterns = (words % np.uint64(0x7F800000)).astype(np.uint32)
        lower = patterns.view(np.float32).astype(np.float64)
        upper = (patterns + np.uint32(1)).view(np.float32).astype(np.float64)
        listed = with_midpoints(lower, np.where(np.isinf(upper), 2.0**128, upper))
    else:
        values = magnitudes(dtype)
        listed = with_midpoints(values[:-1], values[1:])
    positive = np.append(listed, np.array(FIXED_INPUTS, dtype=np.uint64).view(np.float64))
    return np.concatenate([positive, -positive, stream_inputs(stream, FLOAT_FORMATS[dtype])])


def nearest_patterns(values: Reals, dtype: str) -> npt.NDArray[Any]:
    """Return the nearest pattern to every value, ties to even, by comparison with the midpoints.

    The midpoints of a narrow format are float64 numbers, so nothing is rounded here.
    """
    ascending = magnitudes(dtype)
    midpoints = (ascending[:-1] + ascending[1:]) / 2.0
    patterns = np.searchsorted(midpoints, np.abs(values), side="left")
    ties = midpoints[np.minimum(patterns, len(midpoints) - 1)] == np.abs(values)
    patterns += ties & (patterns % 2 == 1)
    return patterns | (np.signbit(values).astype(np.int64) << (FLOAT_FORMATS[dtype].bits - 1))


def encoded_digest(patterns: npt.NDArray[Any], dtype: str) -> str:
    """Return the digest of bit patterns, in which every NaN counts as the same one."""
    layout = FLOAT_FORMATS[dtype]
    unsigned = patterns.astype(np.int64) & ((1 << (layout.bits - 1)) - 1)
    missing = unsigned > layout.overflow_bits if layout.has_infinity else unsigned == layout.overflow_bits
    canonical = np.where(missing, layout.nan_bits, patterns.astype(np.int64))
    return digest(canonical.astype(f"u{layout.bits // 8}"))


def dtype_vectors() -> dict[str, Any]:
    """Return everything in `dtype_vectors.json`."""
    narrow = []
    for dtype in NARROW_DTYPES:
        inputs = conversion_inputs(dtype)
        narrow.append(
            {
                "dtype": dtype,
                "decoded": digest(decoded_values(dtype)),
                "nan": f"0x{FLOAT_FORMATS[dtype].nan_bits:x}",
                "input_count": len(inputs),
                "inputs": digest(inputs),
                "encoded": encoded_digest(nearest_patterns(inputs, dtype), dtype),
            }
        )
    inputs = conversion_inputs("float32")
    with np.errstate(over="ignore"):
        # NumPy leaves this conversion to the processor, which rounds once.
        patterns = inputs.astype(np.float32).view(np.uint32)
    return {
        "word_count": CONVERSION_WORDS,
        "fixed_inputs": [f"0x{bits:016x}" for bits in FIXED_INPUTS],
        "narrow_description": NARROW_DESCRIPTION,
        "narrow": narrow,
        "float32_description": FLOAT32_DESCRIPTION,
        "float32": [
            {
                "input_count": len(inputs),
                "inputs": digest(inputs),
                "encoded": encoded_digest(patterns, "float32"),
            }
        ],
    }
