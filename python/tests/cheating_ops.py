"""Which op of a project each function of `cheating_kernels` and `own_op_kernels` is."""

from __future__ import annotations

from typing import Any

NO_RESULTS = (
    "lazy",
    "subclass",
    "a_list",
    "nothing",
    "two",
    "none_of_one",
    "two_by_name",
    "a_list_in_a_tuple",
)
FINE = (
    "relu",
    "on_its_own_copy",
    "column_major",
    "with_gaps",
    "backwards",
    "one_in_a_tuple",
    "one_by_any_name",
    "other_byte_order",
    "part_of_larger_memory",
)
INPUTS = (
    "overwrites",
    "writes_behind",
    "returns_input",
    "returns_view",
    "returns_transposed_twice",
    "returns_other_view",
    "copies_input",
)
OUTPUTS = (
    "threes",
    "zeros",
    "never_written",
    "another_shape",
    "another_dtype",
    "unknown_dtype",
    "raises",
    "ends_the_program",
)
KEPT = (
    "cached_by_address",
    "cached_by_identity",
    "cached_by_shape",
    "reused_output",
    "reused_outputs",
    "right_for_one",
    "right_for_two",
    "right_for_150",
    "right_for_new_shapes_only",
)
TAKING_OUT = (
    "without_tail",
    "past_the_end",
    "ignores_out",
    "returns_other_than_out",
    "returns_out",
    "fills_out",
)


def _relus(*names: str, **more: str) -> dict[str, dict[str, Any]]:
    return {name: {"module": f"cheating_kernels:{name}", "op": "relu", **more} for name in names}


def _own(signature: str, reference: str, *names: str) -> dict[str, dict[str, Any]]:
    op = {"signature": signature, "reference": f"own_op_kernels:{reference}"}
    return {name: {"module": f"own_op_kernels:{name}", **op} for name in names}


#: What a project says of each function, by its name.
OPS: dict[str, dict[str, Any]] = {
    **_relus(*INPUTS, *OUTPUTS, *NO_RESULTS, *KEPT, *TAKING_OUT, *FINE),
    **_relus("relu", "launched", launches="cheating_kernels:relu_kernel"),
    **{
        name: {"module": f"float_environment_kernels:{name}", "op": "relu"}
        for name in ("rounds_up", "flushes", "rounds_up_for_itself")
    },
    "summed_in_any_order": {"module": "cheating_kernels:summed_in_any_order", "op": "sum"},
    **_own(
        "x[N] -> low[N] high[N]", "halves", "halves", "halves_by_name", "halves_swapped", "halves_misnamed"
    ),
    **_own(
        "x[N] -> x[N]",
        "increment",
        "increment_in_place",
        "increment_without_result",
        "increment_elsewhere",
    ),
    **_own("x[N] y[N] -> x[N]", "added", "added_to_the_other"),
    **_own(
        "x[...,N] -> x[...,N]", "halve", "halve", "halve_in_place", "halve_and_return", "halve_first_column"
    ),
    **_own("x[N] y[N] -> out[N] x[N]", "take", "take_without_x", "take_both", "take_without_writing"),
}
