"""Every reference of the catalogue against an independent implementation in float64."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess

import independent
import pytest
from independent.cases import Reference, agreement, generated

CASES = 200


def references() -> dict[str, Reference]:
    """Return the independent implementation of every op."""
    table: dict[str, Reference] = {}
    for module in pkgutil.iter_modules(independent.__path__):
        if module.name != "cases":
            table.update(importlib.import_module(f"independent.{module.name}").REFERENCES)
    return table


@pytest.mark.parametrize("op", sorted(references()))
def test_agrees_with_the_engine(op: str) -> None:
    """On generated cases, edge cases included, within a few ulp of float64."""
    reference = references()[op]
    compared, excused, share = 0, 0, 0.0
    count = 0
    for case in generated(op, CASES):
        found = agreement(case, reference(case))
        where = f"seed {case.seed}, {case.dtype}, {case.strategy}, {case.sizes}, {case.parameters}"
        assert found.problem is None, f"{where}: {found.problem}"
        compared, excused, share = compared + found.compared, excused + found.excused, max(share, found.share)
        count += 1
    print(
        f"{op}: {count} cases, {compared} elements, {excused} excused, at most {share:.2f} of what is allowed"
    )
    assert count == CASES
    assert compared > 4 * excused, f"only {compared} elements were compared, {excused} were excused"


def test_every_op_has_one() -> None:
    """An op without an independent implementation is one whose reference nobody has checked."""
    program = os.environ["GPUEMU_TEST_PROGRAM"]
    listed = subprocess.run([program, "ops", "--format", "json"], capture_output=True, check=True)
    names = {entry["schema"]["name"] for entry in json.loads(listed.stdout)}
    assert names == set(references())
