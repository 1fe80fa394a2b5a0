"""How the worker's thread rounds and what it makes of subnormal numbers.

Nothing of Python tells, so it is found out by computing.
"""

import os
import struct

# Names, so that nothing is computed when the file is compiled.
ONE, LITTLE, NORMAL, SUBNORMAL, LARGE = 1.0, 1e-30, 2.2250738585072014e-308, 5e-324, 2.0**1000
NO_BITS = struct.pack("<d", 0.0)


def float_environment() -> list[str]:
    """Return how it differs from the standard, in the words that the engine has for it."""
    # Where subnormal operands are taken for zero, a comparison with zero tells nothing.
    flushed = struct.pack("<d", NORMAL * 0.5) == NO_BITS
    taken_for_zero = SUBNORMAL * LARGE == 0.0
    if os.uname().machine in ("arm64", "aarch64"):
        found = ["subnormal numbers are flushed to zero"] if flushed or taken_for_zero else []
    else:
        found = ["subnormal results are flushed to zero"] if flushed else []
        found += ["subnormal operands are taken for zero"] if taken_for_zero else []
    if ONE + LITTLE > ONE:
        found.append("numbers are rounded up")
    elif -ONE - LITTLE < -ONE:
        found.append("numbers are rounded down")
    elif ONE - LITTLE < ONE:
        found.append("numbers are rounded towards zero")
    return found
