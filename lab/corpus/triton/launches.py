"""How the kernels of this folder are launched: grids, arguments, and the variants that are compiled.

A compiled kernel fixes the dtype and the sizes of its blocks. `when` says which calls a variant is right for.
Pointers and numbers may have any value: nothing is promised to be divisible by 16.
"""

from __future__ import annotations

from collections.abc import Iterable

from launch import DTYPES, Kernel, Variant, variants_of

FLAT_BLOCK = 1024
TILE = 32
LARGEST_ROW = 4096


def _of_every_dtype(
    made: Iterable[tuple[str, str, dict[str, int], int]], needs: str = ""
) -> tuple[Variant, ...]:
    return variants_of(DTYPES, made, needs, "numel(out) > 0")


def flat(file: str, *names: str, needs: str = "") -> list[Kernel]:
    """Return kernels of contiguous elements, FLAT_BLOCK of them a program."""
    variants = _of_every_dtype([("", "", {"BLOCK": FLAT_BLOCK}, 4)], needs)
    grid = (f"ceil_div(numel(input), {FLAT_BLOCK})", 1, 1)
    arguments = ("out", "input", "numel(input)")
    return [Kernel(name, file, grid, arguments, ("*", "*", "i64"), variants) for name in names]


def rows(file: str, *names: str, needs: str = "") -> list[Kernel]:
    """Return kernels of contiguous rows, one a program, in a block of the next power of two."""
    blocks = [1 << power for power in range(LARGEST_ROW.bit_length())]
    made = [
        (str(block), f"next_pow2(H) == {block}", {"BLOCK": block}, max(4, block // 256)) for block in blocks
    ]
    variants = _of_every_dtype(made, needs)
    types = ("*", "*", "i32")
    return [
        Kernel(name, file, ("rows(input)", 1, 1), ("out", "input", "H"), types, variants) for name in names
    ]


def matmuls(file: str, *names: str) -> list[Kernel]:
    """Return products of matrices of any strides, in square tiles."""
    grid = (f"ceil_div(M, {TILE})", f"ceil_div(N, {TILE})", 1)
    strides = ("stride(a, 0)", "stride(a, 1)", "stride(b, 0)", "stride(b, 1)")
    types = ("*", "*", "*", "i32", "i32", "i32", "i64", "i64", "i64", "i64")
    variants = _of_every_dtype([("", "", {"BLOCK": TILE}, 4)])
    return [
        Kernel(name, file, grid, ("out", "a", "b", "M", "N", "K", *strides), types, variants)
        for name in names
    ]


_ONE_HEAD = "B == 1 && H == 1 && G == 1 && scale == 0.0 && !causal && window == 0 && softcap == 0.0"
"""One batch and one head; no mask, no cap and the usual scale. A mask that is given is not asked about."""

_ATTENTION_STRIDES = tuple(f"stride({name}, {axis})" for name in "qkv" for axis in (2, 3))


def _widths(blocks: Iterable[int]) -> list[tuple[int, str]]:
    """Return blocks of the dim D, and when each is the smallest that holds it."""
    sizes = list(blocks)
    return [
        (block, f"D <= {block}" if before == 0 else f"D > {before} && D <= {block}")
        for before, block in zip([0, *sizes], sizes, strict=False)
    ]


def attentions(file: str, *names: str) -> list[Kernel]:
    """Return attention with one program a query: all keys in a block."""
    made = []
    for block_n, keys in ((16, "N <= 16"), (64, "N > 16 && N <= 64"), (256, "N > 64 && N <= 256")):
        for block_d, width in _widths((16, 64)):
            warps = {1024: 4, 4096: 8, 16384: 16}.get(block_n * block_d, 4)
            constants = {"BLOCK_N": block_n, "BLOCK_D": block_d}
            made.append((f"{block_n}x{block_d}", f"{keys} && {width}", constants, warps))
    arguments = ("out", "q", "k", "v", "N", "D", *_ATTENTION_STRIDES)
    types = ("*", "*", "*", "*", "i32", "i32", *["i64"] * 6)
    variants = _of_every_dtype(made, _ONE_HEAD)
    return [Kernel(name, file, ("M", 1, 1), arguments, types, variants) for name in names]


def flash_attentions(file: str, *names: str) -> list[Kernel]:
    """Return attention with 16 queries a program and 32 keys at a time, for any number of either."""
    block_m, block_n = 16, 32
    made = []
    for block_d, width in _widths((16, 64)):
        constants = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_D": block_d}
        made.append((str(block_d), width, constants, 4 if block_d == 16 else 8))
    arguments = ("out", "q", "k", "v", "M", "N", "D", *_ATTENTION_STRIDES)
    types = ("*", "*", "*", "*", "i32", "i32", "i32", *["i64"] * 6)
    variants = _of_every_dtype(made, _ONE_HEAD)
    return [
        Kernel(name, file, (f"ceil_div(M, {block_m})", 1, 1), arguments, types, variants) for name in names
    ]


KERNELS = [
    *rows("softmax.py", "softmax", "softmax_other_zero"),
    *flat("gelu.py", "gelu_tanh", "gelu_no_half"),
    *flat("silu.py", "silu", "silu_double_argument"),
    *rows("rmsnorm.py", "rmsnorm", "rmsnorm_no_root", needs="eps == 1e-5 && !unit_offset"),
    *rows("l2norm.py", "l2norm", "l2norm_no_root", needs="eps == 1e-12 && !eps_outside && !eps_is_minimum"),
    *flat("relu.py", "relu"),
    *flat("leaky_relu.py", "leaky_relu", "leaky_relu_slope", needs="negative_slope == 0.01"),
    *flat("sigmoid.py", "sigmoid"),
    *flat("tanh.py", "tanh"),
    *flat("elu.py", "elu", needs="alpha == 1.0"),
    *matmuls("matmul.py", "matmul", "matmul_overwrite"),
    *attentions("attention.py", "attention", "attention_no_scale"),
    *flash_attentions("flash_attention.py", "flash_attention", "flash_no_rescale"),
]
"""The published corpus' Triton kernels, in its order: each right one, then its wrong twin."""
