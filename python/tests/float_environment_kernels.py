"""Functions that change how their thread computes."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LIBRARY = ctypes.CDLL(None)
IS_X86 = platform.machine() in ("x86_64", "AMD64")
UPWARD = 0x800 if IS_X86 else 0x400000
# Bytes of the C library's record of it, and in it the bits by which subnormal numbers are taken for zero.
_RECORD, _PLACE, _FLUSHING = (32, 28, 0x8040) if IS_X86 else (8, 0, 1 << 24)


def round_up() -> None:
    """Have this thread round up from now on."""
    assert _LIBRARY.fesetround(UPWARD) == 0


def round_to_nearest() -> None:
    """Have this thread round as it should."""
    assert _LIBRARY.fesetround(0) == 0


def flush(on: bool) -> None:
    """Have this thread take subnormal numbers for zero, or for what they are."""
    record = ctypes.create_string_buffer(_RECORD)
    assert _LIBRARY.fegetenv(record) == 0
    word = int.from_bytes(record.raw[_PLACE : _PLACE + 4], "little")
    word = word | _FLUSHING if on else word & ~_FLUSHING
    ctypes.memmove(ctypes.addressof(record) + _PLACE, word.to_bytes(4, "little"), 4)
    assert _LIBRARY.fesetenv(record) == 0


def relu(input: Array) -> Array:
    """Return the op's result."""
    return np.maximum(input, 0)


def rounds_up(input: Array) -> Array:
    """Leave another direction of rounding behind."""
    round_up()
    return relu(input)


def flushes(input: Array) -> Array:
    """Leave subnormal numbers flushed behind."""
    flush(True)
    return relu(input)


def rounds_up_for_itself(input: Array) -> Array:
    """Change the direction of rounding, and set it back."""
    round_up()
    result = relu(input)
    round_to_nearest()
    return result
