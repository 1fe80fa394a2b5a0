"""Packages that some tests need, and what happens where one is missing."""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import Any

import pytest


def require(name: str) -> Any:
    """Import a package. Where it is missing, skip the tests; fail them in CI or if asked to.

    `GPUEMU_REQUIRE_FRAMEWORKS=1` asks.
    """
    if name == "tensorflow":
        # Both bring an LLVM. Loaded after TensorFlow, Triton's ends the process; before it, both work.
        with contextlib.suppress(ImportError):
            importlib.import_module("triton")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if os.environ.get("GPUEMU_REQUIRE_FRAMEWORKS") == "1" or os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{name} cannot be imported: {error}", allow_module_level=True)
