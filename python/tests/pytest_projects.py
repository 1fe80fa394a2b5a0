"""Projects whose tests call gpuemu, run by a real pytest in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGE = Path(__file__).parents[1]

KERNELS = """
import numpy as np


def relu(input):
    return np.maximum(input, 0)


def now_and_then(input):
    # Wrong for about one shape in five.
    return relu(input) + input.dtype.type(input.size % 5 == 3)
"""


def environment(**more: str) -> dict[str, str]:
    """Return the environment in which `pytest` is this interpreter's, with the plugin of gpuemu."""
    # In CI, pytest repeats every message in its summary.
    unwanted = ("CI", "BUILD_NUMBER")
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", *unwanted))}
    xdist = ["xdist.plugin"] if find_spec("xdist") else []
    folders = [str(Path(sys.executable).parent), known.get("PATH", "")]
    return {
        **known,
        "PATH": os.pathsep.join(folders),
        "PYTHONPATH": str(PACKAGE),
        # By name, whether or not a build has left a description of the package beside it.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": ",".join(["gpuemu.pytest_plugin", *xdist]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
    }


def run_pytest(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder, and return what it said."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(**more), capture_output=True, text=True, check=False, timeout=120
    )


def run_line(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line as somebody would paste it into a shell."""
    return subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
