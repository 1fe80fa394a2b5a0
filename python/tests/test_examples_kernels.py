"""The examples with Triton and CUDA C++: every command of their READMEs."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_projects import check_example
from framework_packages import require_installed

require_installed("triton")  # The compilers of CUDA C++ are there where it is.

pytest_plugins = ["daemon_fixtures"]


@pytest.mark.parametrize("name", ["triton", "cuda"])
def test_the_readme_shows_what_happens(name: str, daemon_home: Path, tmp_path: Path) -> None:
    check_example(name, tmp_path)
