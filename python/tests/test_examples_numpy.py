"""The example with NumPy: every command of its README."""

from __future__ import annotations

from pathlib import Path

from example_projects import check_example

pytest_plugins = ["daemon_fixtures"]


def test_the_readme_shows_what_happens(daemon_home: Path, tmp_path: Path) -> None:
    check_example("numpy", tmp_path)
