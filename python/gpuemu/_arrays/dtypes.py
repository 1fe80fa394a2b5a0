"""The element types of tensors, and one correct rounding from float64 to each of them.

`ml_dtypes` provides the NumPy types of bfloat16 and fp8 but converts float64 through float32,
which rounds twice and is off by one place near ties. So the bit patterns are made here, and
`ml_dtypes` only lends its types.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu._cases.streams import Reals, Words


@dataclass(frozen=True)
class FloatFormat:
    """The bit layout of a binary floating-point format of at most 64 bits."""

    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool = True
    """Whether the topmost exponent holds infinities. The `fn` formats have only a NaN there."""

    @property
    def bits(self) -> int:
        """Width in bits."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return 1 - self.bias

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest finite number."""
        return self.bias if self.has_infinity else self.bias + 1

    @property
    def overflow_bits(self) -> int:
        """The pattern one above the largest finite number: infinity, or NaN where there is none."""
        if self.has_infinity:
            return ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        return (1 << (self.bits - 1)) - 1

    @property
    def nan_bits(self) -> int:
        """A quiet NaN."""
        quiet = 1 << (self.mantissa_bits - 1) if self.has_infinity else 0
        return self.overflow_bits | quiet

    @property
    def max_value(self) -> float:
        """The largest finite number."""
        # Where there is no infinity, the topmost mantissa of the topmost exponent is the NaN.
        missing = 1 if self.has_infinity else 2
        return (2.0 - missing * power_of_two(-self.mantissa_bits)) * power_of_two(self.max_exponent)

    @property
    def min_normal(self) -> float:
        """The smallest positive normal number."""
        return power_of_two(self.min_exponent)

    @property
    def min_subnormal(self) -> float:
        """The smallest positive number."""
        return power_of_two(self.min_exponent - self.mantissa_bits)

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next number."""
        return power_of_two(-self.mantissa_bits - 1)


FLOAT_FORMATS = {
    "float8_e4m3fn": FloatFormat(4, 3, has_infinity=False),
    "float8_e5m2": FloatFormat(5, 2),
    "float16": FloatFormat(5, 10),
    "bfloat16": FloatFormat(8, 7),
    "float32": FloatFormat(8, 23),
    "float64": FloatFormat(11, 52),
}
"""The layouts of the floating-point dtypes by name."""

_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_SIGNED = ("int8", "int16", "int32", "int64")
_EXTENSION = ("bfloat16", "float8_e4m3fn", "float8_e5m2")

DTYPES = ("bool", *_UNSIGNED, *_SIGNED, *FLOAT_FORMATS)
"""Every dtype's name, integers first, in ascending size."""


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype given by name or as anything that `numpy.dtype` accepts."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in DTYPES:
        raise ValueError(f"unknown dtype '{name}'; known dtypes: {', '.join(DTYPES)}")
    return name


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy type of a dtype, from `ml_dtypes` where NumPy has none of its own."""
    if name not in _EXTENSION:
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"dtype '{name}' needs the package ml_dtypes: pip install ml_dtypes") from error
    extension: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return extension


def encode(values: Reals, dtype: Any) -> npt.NDArray[Any]:
    """Round float64 values to a dtype: to nearest, ties to even, once.

    Integers saturate and take NaN as 0; bool is whether a value differs from 0.
    """
    name = dtype_name(dtype)
    if name == "bool":
        return np.not_equal(values, 0.0)
    if name in _UNSIGNED or name in _SIGNED:
        return _saturated(values, np.dtype(name))
    if name == "float64":
        return values
    if name == "float32":
        with np.errstate(all="ignore"):
            return values.astype(np.float32)
    target = numpy_dtype(name)
    patterns = _narrow_patterns(values, FLOAT_FORMATS[name])
    return patterns.astype(f"u{target.itemsize}").view(target)


def power_of_two(exponent: int) -> float:
    """Return 2**exponent, also where it is subnormal; infinity above 1023, zero below -1074."""
    if exponent > 1023:
        bits = 0x7FF << 52
    elif exponent >= -1022:
        bits = (exponent + 1023) << 52
    elif exponent >= -1074:
        bits = 1 << (exponent + 1074)
    else:
        bits = 0
    value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return value


def _saturated(values: Reals, target: np.dtype[Any]) -> npt.NDArray[Any]:
    limits = np.iinfo(target)
    rounded = np.rint(np.where(np.isnan(values), 0.0, values))
    # The first whole number above the range is a power of two, so unlike the largest number of
    # a 64-bit type it is a float64.
    too_low, too_high = rounded < float(limits.min), rounded >= float(limits.max + 1)
    result = np.where(too_low | too_high, 0.0, rounded).astype(target)
    result[too_low] = limits.min
    result[too_high] = limits.max
    return result


def _narrow_patterns(values: Reals, layout: FloatFormat) -> Words:
    """Return the bit patterns nearest to values in a format of at most 32 bits."""
    missing = np.isnan(values)
    magnitudes = np.where(missing, 0.0, np.abs(values))
    # Above the topmost binade the step no longer matters: the result overflows with any of them.
    exponents = (magnitudes.view(np.uint64) >> np.uint64(52)).astype(np.int64) - 1023
    exponents = np.clip(exponents, layout.min_exponent, layout.max_exponent)
    # Adding 1.5 * 2**52 steps leaves no bits below one step, so the addition itself rounds.
    step_fields = (exponents + (52 - layout.mantissa_bits + 1023)).astype(np.uint64) << np.uint64(52)
    shifts = 1.5 * step_fields.view(np.float64)
    rounded = (magnitudes + shifts) - shifts

    subnormal_steps = np.minimum(rounded, layout.min_normal) / layout.min_subnormal
    mantissas_dropped = np.uint64(52 - layout.mantissa_bits)
    rebias = np.uint64((1023 - layout.bias) << layout.mantissa_bits)
    normal = np.maximum(rounded, layout.min_normal).view(np.uint64) >> mantissas_dropped
    patterns: Words = np.where(
        rounded < layout.min_normal, subnormal_steps.astype(np.uint64), normal - rebias
    )
    patterns[rounded > layout.max_value] = layout.overflow_bits
    patterns[missing] = layout.nan_bits
    signs = np.signbit(values).astype(np.uint64) << np.uint64(layout.bits - 1)
    return patterns | signs
