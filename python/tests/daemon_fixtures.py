"""A real daemon for tests: in a folder of its own, ended with the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuemu.client import Client


@pytest.fixture(scope="session")
def daemon_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return gpuemu's folder for the whole run; the daemon in it is ended at the end."""
    if not os.environ.get("GPUEMU_DAEMON"):
        if os.environ.get("CI") == "true":
            pytest.fail("GPUEMU_DAEMON is not set; run the tests by `cargo xtask test`")
        pytest.skip("GPUEMU_DAEMON is not set; `cargo xtask test` sets it")
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        set_home(patch, home)
        yield home
        with Client() as client:
            client.shutdown()


def set_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Let this process use gpuemu's folder and nothing of the user's own."""
    patch.setenv("GPUEMU_HOME", str(home))
    patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    for name in ("GPUEMU_SOCKET", "GPUEMU_CONFIG", "GPUEMU_PYTHON", "GPUEMU_LOG_LEVEL"):
        patch.delenv(name, raising=False)


@pytest.fixture
def own_home(tmp_path: Path, daemon_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for a daemon that a test ends itself."""
    home = tmp_path / "home"
    set_home(monkeypatch, home)
    yield home
    with Client() as client:
        client.shutdown()


@pytest.fixture
def unused_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that does not exist, in which no daemon is to be started."""
    home = tmp_path / "unused"
    set_home(monkeypatch, home)
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return an empty folder for a project."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def client(daemon_home: Path, project: Path) -> Iterator[Client]:
    """Return a client of a project without configuration."""
    with Client(project=project) as client:
        yield client


PROJECT = """
[project]
name = "p"
framework = "numpy"

[[ops]]
name = "relu"
module = "kernels"
"""

KERNELS = """
import time

import numpy as np


def relu(input):
    return np.maximum(input, 0)
"""


@pytest.fixture
def relu_client(daemon_home: Path, project: Path) -> Iterator[Client]:
    """Return a client of a project whose op `relu` is right."""
    (project / "gpuemu.toml").write_text(PROJECT)
    (project / "kernels.py").write_text(KERNELS)
    with Client(project=project) as client:
        yield client
