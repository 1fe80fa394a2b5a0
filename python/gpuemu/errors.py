"""What goes wrong in this process, in a kernel or on the way to the daemon, with a code and what to do."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuemu.emulation import KernelFinding
    from gpuemu.results import ValidationResult


class ClientError(Exception):
    """A request was not done.

    `code` is the daemon's: `OpNotFound`, `InvalidRequest`, `ConfigError` and so on, as in
    `docs/reference/protocol.md`.
    """

    code: str
    """What kind of error it is."""
    message: str
    """What is wrong."""
    hint: str | None
    """What to do about it."""

    def __init__(self, message: str, *, code: str = "InternalError", hint: str | None = None) -> None:
        """Make an error of a code, with a hint of what to do."""
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        """Return what is wrong and, on a line of its own, what to do."""
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Let errors travel between processes, as test runners in parallel send them."""
        return _remade, (type(self), self.message, self.__dict__)


class ConnectionError(ClientError, builtins.ConnectionError):
    """There is no daemon to talk to, or the connection to it was lost.

    `code` is one of `NotRunning`, `NotStarted`, `ConnectFailed`, `TimedOut`, `Broken`, `VersionMismatch` and
    `Unreadable`.
    """


class ValidationError(ClientError):
    """An output is wrong, and an exception was asked for."""

    result: ValidationResult | None
    """The verdict; None where several are meant."""

    def __init__(
        self, message: str, result: ValidationResult | None = None, *, hint: str | None = None
    ) -> None:
        """Make an error of a verdict."""
        super().__init__(message, code="ValidationFailed", hint=hint)
        self.result = result


class KernelError(ClientError):
    """A compiled kernel could not be run to its end.

    `code` is one of `NotCompiled`, `NotDecoded` (the machine does not know an instruction), `LaunchRefused`,
    `AssertionFailed`, `Trap`, `Endless` and `NotChecked` (it ran, and not all of it could be looked at).
    """


class KernelFindingsError(ClientError):
    """A compiled kernel ran, and did something wrong with memory or with barriers."""

    findings: list[KernelFinding]
    """What was wrong, in the order of the code."""

    def __init__(self, message: str, findings: list[KernelFinding], *, hint: str | None = None) -> None:
        """Make an error of findings."""
        super().__init__(message, code="KernelFindings", hint=hint)
        self.findings = findings


def _remade(kind: type[ClientError], message: str, state: dict[str, Any]) -> ClientError:
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error
