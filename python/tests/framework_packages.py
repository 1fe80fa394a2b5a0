"""Packages that some tests need, and what happens where one is missing."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
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
        if _must_be_there():
            raise
        pytest.skip(f"{name} cannot be imported: {error}", allow_module_level=True)


def require_installed(name: str) -> None:
    """Do as `require` does for tests whose own processes import the package: here that would take seconds."""
    if importlib.util.find_spec(name) is None:
        if _must_be_there():
            raise ModuleNotFoundError(f"{name} is not installed", name=name)
        pytest.skip(f"{name} is not installed", allow_module_level=True)


def _must_be_there() -> bool:
    return os.environ.get("GPUEMU_REQUIRE_FRAMEWORKS") == "1" or os.environ.get("CI") == "true"
