"""Requests to the daemon and their answers, and where the daemon's program is."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuemu._arrays.numbers import json_value
from gpuemu._arrays.tensors import Bytes, Outgoing
from gpuemu._native import DaemonConnection, SharedSegment, default_socket
from gpuemu.errors import ClientError, ConnectionError
from gpuemu.results import read_answer

PROGRAM = "gpuemu-daemon"

_SHARED_FROM = 256 << 10
"""Bytes of tensors from which on they go through shared memory."""

_MOST_SEGMENTS = 4

_DONE_ONCE = (
    "RecordResults",
    "SubmitOutput",
    "DeleteBaseline",
    "Shutdown",
    "BeginCampaign",
    "KeepMinimized",
    "EndCampaign",
)
"""Requests that would do something else the second time."""


class Connection:
    """The daemon on one socket. Any number of threads may ask at once."""

    def __init__(self, socket: str | os.PathLike[str] | None, timeout: float, auto_start: bool) -> None:
        """Find the socket and the daemon's program; nothing is opened before the first request."""
        found = socket if socket is not None else default_socket()
        if found is None:
            message = "cannot locate gpuemu's home directory: neither GPUEMU_HOME nor HOME is set"
            raise ConnectionError(message, code="NotRunning", hint="set GPUEMU_HOME, or name the socket")
        self.socket = Path(found)
        self._timeout = timeout
        program: str | None = None
        hint: str | None = "start one with `gpuemu daemon start --background`, or leave auto_start on"
        if auto_start:
            program, hint = find_program()
        self._daemon = DaemonConnection(self.socket, timeout, program, hint)
        self._segments: list[SharedSegment] = []
        self._closed = False

    def ask(
        self,
        kind: str,
        fields: Mapping[str, Any],
        tensors: Outgoing | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Return what the daemon answers; an error that it answers is raised."""
        answer, payload = self._exchange(self._daemon, {"type": kind, **fields}, tensors, timeout)
        return raised(read_answer(answer, payload))

    def ask_plain(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the daemon answers, as JSON has it; an error that it answers is raised."""
        answer, _ = self._exchange(self._daemon, {"type": kind, **fields}, None, None)
        if answer.get("type") == "Error":
            raised(read_answer(answer))
        return answer

    def ask_text(self, kind: str, request: str) -> Any:
        """Return what the daemon answers to a request that is JSON already."""
        self._check_open()
        answer, payload = _read(*self._daemon.call(request, [], None, kind not in _DONE_ONCE))
        return raised(read_answer(answer, payload))

    def ask_running(self, kind: str) -> Any:
        """Return what the daemon answers if there is one; none is started."""
        hint = "the daemon does not run"
        daemon = DaemonConnection(self.socket, self._timeout, None, hint)
        answer, payload = self._exchange(daemon, {"type": kind}, None, None)
        daemon.close()
        return raised(read_answer(answer, payload))

    def forget(self) -> None:
        """Close the connections; the next request opens another."""
        self._daemon.close()

    def close(self) -> None:
        """Close the connections and give the shared memory back."""
        self._closed = True
        self._daemon.close()
        while self._segments:
            self._segments.pop().close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientError("the client is closed", code="InvalidRequest", hint="make another one")

    def _exchange(
        self,
        daemon: DaemonConnection,
        request: dict[str, Any],
        tensors: Outgoing | None,
        timeout: float | None,
    ) -> tuple[dict[str, Any], Bytes]:
        self._check_open()
        repeatable = request["type"] not in _DONE_ONCE
        if tensors is None or tensors.size < _SHARED_FROM:
            arrays = [] if tensors is None else tensors.place_behind()
            return _read(*daemon.call(_text(request), arrays, timeout, repeatable))
        # One request at a time has a segment: what it points to must not change before it is answered.
        segment = self._segments.pop() if self._segments else SharedSegment()
        try:
            arrays = []
            segment.clear()
            try:
                tensors.place_shared(segment)
            except OSError:
                # No room, as in a container whose shared memory is small: then it goes over the socket.
                segment.close()
                arrays = tensors.place_behind()
            return _read(*daemon.call(_text(request), arrays, timeout, repeatable))
        finally:
            if len(self._segments) < _MOST_SEGMENTS and not self._closed:
                self._segments.append(segment)
            else:
                segment.close()


def raised(answer: Any) -> Any:
    """Return an answer, or raise the error that it is."""
    if isinstance(answer, ClientError):
        raise answer
    return answer


def find_program() -> tuple[str | None, str | None]:
    """Return the daemon's program, or what to do where there is none."""
    named = os.environ.get("GPUEMU_DAEMON")
    if named:
        # Where it is no program, starting it says so.
        return os.path.abspath(named), None
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    looked_at = list(dict.fromkeys(str(folder / PROGRAM) for folder in folders))
    for path in looked_at:
        if os.access(path, os.X_OK):
            return path, None
    on_path = shutil.which(PROGRAM)
    if on_path is not None:
        return os.path.abspath(on_path), None
    places = ", ".join([*looked_at, "the folders of PATH"])
    again = "install gpuemu again (`pip install .` in its checkout), or set GPUEMU_DAEMON to it"
    return None, f"{PROGRAM} is in none of {places}: {again}"


def _text(request: Mapping[str, Any]) -> str:
    try:
        return json.dumps(request, allow_nan=False, default=json_value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the request cannot be written as JSON: {error}") from error


def _read(text: str, payload: Bytes) -> tuple[dict[str, Any], Bytes]:
    try:
        answer = json.loads(text)
    except ValueError as error:
        message = f"the daemon's answer cannot be read: {error}"
        raise ConnectionError(message, code="Unreadable") from error
    return answer, payload
