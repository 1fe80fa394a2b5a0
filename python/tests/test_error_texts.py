"""The errors that people meet first, word for word: a change of their texts is a change of the product."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from framework_packages import require
from numpy_kernels import Array, relu

import gpuemu
from gpuemu.client import Client
from gpuemu.errors import ClientError, ConnectionError

pytest_plugins = ["daemon_fixtures"]

SEED = 11967340547968660931
PLACE = f"  float32, input[3, 13], layout contiguous, regular values, seed {SEED}"


def said(function: Any) -> str:
    """Return what a check of two cases of relu says."""
    with pytest.raises(AssertionError) as caught:
        gpuemu.check("relu", function, cases=2, seed=1, store=False)
    return str(caught.value)


def message(name: str, finding: str) -> str:
    """Return what it ought to say, in full."""
    return (
        f"relu: 2 of 2 cases failed (float32), callable test_error_texts.{name}\n"
        f"{PLACE}\n"
        f"    {finding}\n"
        "  smallest failing case: float32, no dims\n"
        f'  reproduce: gpuemu.check("relu", {name}, replay={SEED})'
    )


def test_the_daemon_is_not_found(tmp_path: Path, unused_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUEMU_DAEMON", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / name))
    monkeypatch.setenv("PATH", str(tmp_path))
    with Client() as client, pytest.raises(ConnectionError) as caught:
        client.ping()
    assert caught.value.code == "NotRunning"
    assert str(caught.value) == (
        f"no daemon listens on {unused_home}/gpuemu.sock\n"
        f"hint: gpuemu-daemon is in none of {tmp_path}/bin/gpuemu-daemon, {tmp_path}/scripts/gpuemu-daemon, "
        "the folders of PATH: install gpuemu again (`pip install .` in its checkout), "
        "or set GPUEMU_DAEMON to it"
    )


def test_the_daemon_that_is_named_is_no_program(unused_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUEMU_DAEMON", str(unused_home / "none"))
    with Client() as client, pytest.raises(ConnectionError) as caught:
        client.ping()
    assert caught.value.code == "NotStarted"
    assert str(caught.value) == (
        f"the daemon cannot be started: {unused_home}/none: No such file or directory (os error 2)\n"
        "hint: set GPUEMU_DAEMON to the program gpuemu-daemon, or install gpuemu again"
    )


def test_the_daemon_speaks_another_protocol(tmp_path: Path) -> None:
    pynng = require("pynng")
    address = tmp_path / "other.sock"
    with pynng.Rep0(listen=f"ipc://{address}", recv_timeout=20_000) as server:

        def answer() -> None:
            server.recv()
            server.send(b'{"type":"Pong","version":"9.8.7","protocol_version":99,"uptime_seconds":1}')

        thread = threading.Thread(target=answer)
        thread.start()
        with Client(socket=address) as client, pytest.raises(ConnectionError) as caught:
            client.ping()
        thread.join()
    assert caught.value.code == "VersionMismatch"
    assert str(caught.value) == (
        "the daemon is gpuemu 9.8.7 with protocol 99, this is protocol 1\n"
        "hint: end that daemon with `gpuemu daemon stop`; one of this version is started when it is needed"
    )


def test_the_op_is_unknown(client: Client) -> None:
    array = np.ones(3, np.float32)
    requests: list[Any] = [
        lambda op: gpuemu.check(op, relu, store=False),
        lambda op: gpuemu.validate(op, [array], array),
        lambda op: client.validate_op(op, {"input": array}, array),
        lambda op: client.fuzz_op_client_side(op, relu),
    ]
    for request in requests:
        with pytest.raises(ClientError) as caught:
            request("sofmax")
        assert caught.value.code == "OpNotFound"
        assert str(caught.value) == "there is no op 'sofmax'\nhint: did you mean 'softmax'?"
        with pytest.raises(ClientError) as caught:
            request("something_else")
        assert str(caught.value) == (
            "there is no op 'something_else'\n"
            "hint: `gpuemu ops` lists the built-in ops; the project's own are in gpuemu.toml"
        )


def of_another_shape(input: Array) -> Array:
    return np.asarray(relu(input))[None]


def of_another_dtype(input: Array) -> Array:
    return relu(input).astype(np.float64)


def raises(input: Array) -> Array:
    raise RuntimeError("out of registers")


def a_list(input: Array) -> list[float]:
    return [1.0]


def test_the_output_has_another_shape() -> None:
    words = "shape: output 'out' has shape [1, 3, 13], expected [3, 13] [crash]"
    assert said(of_another_shape) == message("of_another_shape", words)


def test_the_output_has_another_dtype() -> None:
    words = "dtype: output 'out' is float64, expected float32 [crash]"
    assert said(of_another_dtype) == message("of_another_dtype", words)


def test_the_callable_raises() -> None:
    line = raises.__code__.co_firstlineno + 1
    words = (
        "runner: the callable raised RuntimeError: out of registers [crash]\n"
        f'        at {__file__}:{line}, in raises: raise RuntimeError("out of registers")'
    )
    assert said(raises) == message("raises", words)


def test_the_callable_returns_a_list() -> None:
    words = "output 'out' is of type list, not a result that can be judged; return a numpy.ndarray"
    assert said(a_list) == message("a_list", f"runner: {words} [crash]")
