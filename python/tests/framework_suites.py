"""What the suites of the frameworks share: their own ops must not be flagged, a wrong kernel must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpuemu

DTYPES = ("float32", "bfloat16", "float16")

VALUES = ("regular", "boundary", "large", "tiny", "mixed", "shifted", "sparse", "clustered", "integers")
"""Every strategy but the one with NaN and infinity in the inputs.

Frameworks differ there: PyTorch's gelu of infinity is NaN for more than a few elements,
and its attention and TensorFlow's softmax return 0 for some rows that are NaN by IEEE rules. gpuemu reports
that.
"""

LONG = {
    "softmax": {"H": [2048, 4097]},
    "log_softmax": {"H": [2048, 4097]},
    "layernorm": {"H": [2048, 4097]},
    "rmsnorm": {"H": [2048, 4097]},
    "matmul": {"K": [2048, 4096], "M": [1, 8], "N": [1, 8]},
    "cross_entropy": {"V": [2048, 4097], "N": [1, 4]},
    "attention": {"N": [2048], "M": [1, 4], "D": [16], "B": 1, "H": 1, "G": [1, 2]},
}
"""Sizes with a reduction of at least 2048."""


def precision(dtype: str, **declared: Any) -> gpuemu.Precision:
    """Return the class that CPU kernels of the frameworks declare: they flush subnormal numbers.

    With `rounded=True` they also round intermediates to the dtype of their inputs, where that is narrower.
    """
    rounded = declared.pop("rounded", False)
    intermediate = dtype if rounded and dtype != "float32" else None
    return gpuemu.Precision(flush_to_zero=True, intermediate=intermediate, **declared)


def assert_not_flagged(
    op: str,
    function: Callable[..., Any],
    framework: str,
    dtype: str,
    declared: gpuemu.Precision,
    cases: int,
    **options: Any,
) -> None:
    """Try a framework's own op on short and on long reductions, with every kind of value."""
    shared = {"framework": framework, "dtypes": [dtype], "precision": declared, "store": False, "seed": 2026}
    judged = 0
    for values in VALUES:
        report = gpuemu.check(op, function, cases=cases, values=values, repeats=20, **shared, **options)
        judged += report.report.passed
    assert judged >= len(VALUES) * cases * 0.9, f"only {judged} cases of {op} in {dtype} were judged"
    if op in LONG:
        long = {**options, "sizes": LONG[op], "budget": 100_000}
        report = gpuemu.check(
            op, function, cases=max(cases, 4), repeats=2, values="regular", **shared, **long
        )
        assert report.report.passed > 0
