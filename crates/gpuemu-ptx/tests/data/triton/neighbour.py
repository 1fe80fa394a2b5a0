"""A helper that another file imports."""

import triton


@triton.jit
def doubled(x):
    """Add a number to itself."""
    return x + x
