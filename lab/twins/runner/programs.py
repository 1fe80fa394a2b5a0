"""Starts the command line that belongs to the source, in a folder and an environment of its own."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pair import ROOT

# No run of pairs takes longer, however slow the machine.
LONGEST_SECONDS = 1800


@cache
def _home() -> str:
    """Return a folder for gpuemu that ends with this process: nothing of the user's own is touched."""
    folder = tempfile.mkdtemp(prefix="gpuemu-twins-home-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def environment(**more: str) -> dict[str, str]:
    """Return the environment in which programs are started."""
    # In CI, pytest repeats every message in its summary.
    unwanted = ("CI", "BUILD_NUMBER", "PYTEST_", "GPUEMU_SOCKET", "GPUEMU_CONFIG")
    known = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {
        **known,
        "GPUEMU_HOME": _home(),
        "XDG_CONFIG_HOME": str(Path(_home(), "config")),
        "GPUEMU_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        **more,
    }


def gpuemu(folder: Path, arguments: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """Run gpuemu in a folder, and return its status and the document that it prints."""
    program = os.environ.get("GPUEMU_TEST_PROGRAM")
    if not program:
        raise RuntimeError("GPUEMU_TEST_PROGRAM is not set; start this by `cargo xtask twins`")
    ended = subprocess.run(
        [program, *arguments, "--format", "json"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )
    try:
        return ended.returncode, json.loads(ended.stdout)
    except ValueError as error:
        said = (ended.stderr or ended.stdout).strip()
        raise RuntimeError(f"gpuemu {' '.join(arguments)} ended with {ended.returncode}: {said}") from error
