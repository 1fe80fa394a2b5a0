from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import framework_packages
import numpy as np
import pytest

from gpuemu.frameworks import FRAMEWORKS, adapter, adapter_for, registry
from gpuemu.frameworks.numpy import NumpyAdapter

PACKAGES = ("torch", "jax", "tensorflow")


def test_importing_the_package_loads_no_framework() -> None:
    program = f"""
import sys
import gpuemu.frameworks as frameworks, numpy
assert type(frameworks.adapter_for(numpy.zeros(3))).__name__ == "NumpyAdapter"
try:
    frameworks.adapter_for([1])
except TypeError:
    pass
loaded = [name for name in {PACKAGES!r} if name in sys.modules]
assert not loaded, loaded
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_an_adapter_is_made_once() -> None:
    assert adapter("numpy") is adapter("numpy")
    assert FRAMEWORKS == ("numpy", "pytorch", "jax", "tensorflow")


def test_an_unknown_framework_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        ValueError, match=r"unknown framework 'PyTorc'; did you mean 'pytorch'\? known .*, tf$"
    ):
        adapter("PyTorc")
    with pytest.raises(ValueError, match="unknown framework 'zzz'; known frameworks: numpy, pytorch"):
        adapter("zzz")


@pytest.mark.parametrize(("name", "package"), [("torch", "torch"), ("jax", "jax"), ("tf", "tensorflow")])
def test_a_missing_package_is_named_with_what_installs_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_adapter", registry._adapter.__wrapped__)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install {package}$"):
        adapter(name)


def test_a_package_that_is_broken_says_so_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(registry, "_adapter", registry._adapter.__wrapped__)
    (tmp_path / "torch.py").write_text("import a_package_that_is_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_missing"):
        adapter("pytorch")


def test_what_is_no_array_has_no_adapter() -> None:
    with pytest.raises(TypeError, match=r"^list is no array .* numpy\.ndarray, torch\.Tensor, jax\.Array"):
        adapter_for([1.0])
    with pytest.raises(TypeError, match=r"^numpy\.ma\.MaskedArray is no array"):
        adapter_for(np.ma.masked_array([1.0]))
    assert isinstance(adapter_for(np.float32(1)), NumpyAdapter)


def test_a_missing_framework_skips_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    for required, in_ci in (("1", "false"), ("0", "true")):
        monkeypatch.setenv("GPUEMU_REQUIRE_FRAMEWORKS", required)
        monkeypatch.setenv("CI", in_ci)
        with pytest.raises(ImportError):
            framework_packages.require("a_package_that_is_missing")
    monkeypatch.setenv("CI", "false")
    with pytest.raises(pytest.skip.Exception):
        framework_packages.require("a_package_that_is_missing")
