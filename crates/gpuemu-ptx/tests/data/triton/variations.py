"""Kernels that are written in other ways, and things that are no kernels."""

import sys

import neighbour
import triton
import triton.language as tl

print("printed while it is imported")
print("printed to stderr", file=sys.stderr)

NUMBER = 3


@triton.autotune(configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["count"])
@triton.heuristics({"EVEN": lambda arguments: arguments["count"] % arguments["BLOCK"] == 0})
@triton.jit
def tuned(out_ptr, x_ptr, count, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    """Copy, below autotune and heuristics, with a helper of another file."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets) if EVEN else tl.load(x_ptr + offsets, mask=offsets < count)
    tl.store(out_ptr + offsets, neighbour.doubled(x), mask=offsets < count)


@triton.jit
def filled(out_ptr, VALUE: tl.constexpr, TYPE: tl.constexpr, BLOCK: tl.constexpr = 64):
    """Write a constant of a type that is a constant too."""
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.full((BLOCK,), VALUE, TYPE))


@triton.jit
def wrong(out_ptr):
    """Use a name that is not there."""
    tl.store(out_ptr, no_such_name)  # noqa: F821


def plain(x):
    """Be no kernel."""
    return x
