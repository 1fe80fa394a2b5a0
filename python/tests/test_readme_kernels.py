"""The examples of the README that need a compiler of kernels."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import readme_example

import gpuemu

EXAMPLES = [
    one for one in readme_example.examples_in(readme_example.README.read_text()) if one.needs_triton()
]


def test_there_is_one() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"line-{example.line}")
def test_it_prints_what_is_shown(example: readme_example.Example, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [Path(os.environ["GPUEMU_DAEMON"]).parent, Path(sys.executable).parent]
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, programs), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", str(Path(gpuemu.__file__).parents[1]))
    # In CI, messages are written for its log.
    monkeypatch.delenv("CI", raising=False)
    assert readme_example.run(example) is None
