"""The example with PyTorch: every command of its README."""

from __future__ import annotations

from pathlib import Path

from example_projects import check_example
from framework_packages import require_installed

require_installed("torch")

pytest_plugins = ["daemon_fixtures"]


def test_the_readme_shows_what_happens(daemon_home: Path, tmp_path: Path) -> None:
    check_example("pytorch", tmp_path)
