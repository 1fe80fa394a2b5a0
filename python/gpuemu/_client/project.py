"""The project that a program in Python belongs to."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from gpuemu import _native


def project_reference(folder: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Return what requests name a project by: the nearest `gpuemu.toml` upwards, or the folder itself."""
    python = os.environ.get("GPUEMU_PYTHON") or sys.executable
    reference: dict[str, Any] = json.loads(
        _native.project_reference(os.fspath(folder or os.getcwd()), python)
    )
    return reference
