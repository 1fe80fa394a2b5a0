"""Triton kernels in the PTX machine, without a GPU.

    with gpuemu.triton.emulate() as session:
        kernel[grid](x, y, out, n, BLOCK=1024)

Unmodified launches are compiled by Triton as for a chip, and the PTX runs on NumPy arrays or CPU tensors with
every access checked. Findings are raised as `gpuemu.KernelFindingsError` at the end of the launch.
`install()` does the same for the rest of the program.

While kernels are emulated, those of all threads are: Triton has one driver for the process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpuemu.emulation import (
    KernelFinding,
    KernelLaunch,
    MachineKeywords,
    MachineOptions,
    finish,
    raise_findings,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ConfigsDisagreeWarning", "Disagreement", "Session", "emulate", "install", "uninstall"]


class ConfigsDisagreeWarning(UserWarning):
    """Two configs of an autotuned kernel gave results that differ by more than rounding."""


@dataclass(frozen=True)
class Disagreement:
    """An array that two configs of an autotuned kernel filled differently."""

    kernel: str
    argument: str
    config: str
    first_config: str
    elements: int
    """How many elements differ."""
    largest: float
    """By how much at most; infinite where one of two elements is NaN or infinite."""

    def __str__(self) -> str:
        """Return which configs, where and by how much."""
        return (
            f"{self.kernel}: {self.elements} elements of {self.argument} differ by up to {self.largest:.3g} "
            f"between the config ({self.config}) and the first ({self.first_config})"
        )


@dataclass
class Session:
    """What was launched while kernels were emulated."""

    options: MachineOptions
    target: str
    outputs: tuple[str, ...]
    raise_on_findings: bool
    every_config: bool
    launches: list[KernelLaunch] = field(default_factory=list)
    """Every launch that came to its end, in order."""
    disagreements: list[Disagreement] = field(default_factory=list)
    """Configs of autotuned kernels whose results differ by more than rounding."""
    skipped_configs: list[tuple[str, str, str]] = field(default_factory=list)
    """Kernel, config and reason, for configs that the chip has no room for or that do not compile."""
    pointers: set[str] = field(default_factory=set)
    """Parameters that were given arrays, by name."""
    _config: str | None = None
    _collected: list[KernelLaunch] | None = None

    @property
    def findings(self) -> list[KernelFinding]:
        """What was wrong in all launches."""
        return [finding for launch in self.launches for finding in launch.findings]

    @property
    def printed(self) -> str:
        """What kernels printed."""
        return "".join(launch.printed for launch in self.launches)

    def finish(self, launch: KernelLaunch) -> None:
        """Keep a launch, show what it printed and raise its findings, unless that waits for others."""
        self.launches.append(launch)
        if not finish(launch, self.raise_on_findings):
            return
        if self._collected is not None:
            self._collected.append(launch)
        else:
            raise_findings([launch])

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Let several launches come to their ends before their findings are raised."""
        if self._collected is not None:
            yield
            return
        collected: list[KernelLaunch] = []
        self._collected = collected
        try:
            yield
        finally:
            self._collected = None
        raise_findings(collected)


@contextlib.contextmanager
def emulate(
    *,
    target: str = "sm_80",
    outputs: Sequence[str] = (),
    raise_on_findings: bool = True,
    every_config: bool = True,
    **machine: Unpack[MachineKeywords],
) -> Iterator[Session]:
    """Run Triton kernels that are launched in this block in the PTX machine.

    `outputs` names parameters whose arrays the kernels only write: reading what they held before is a
    finding, and so is an element that nothing wrote. `raise_on_findings=False` leaves findings in
    `session.findings`. Of an autotuned kernel every config runs on the same data, unless
    `every_config=False`; the arrays keep the result of the first. The other options are those of
    `gpuemu.emulation.MachineOptions`, such as `checks` and `order`.
    """
    if isinstance(outputs, str):
        raise TypeError(f"outputs is the text {outputs!r}; give a list, such as [{outputs!r}]")
    session = Session(MachineOptions(**machine), target, tuple(outputs), raise_on_findings, every_config)
    try:
        from gpuemu._launches.triton_driver import active
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise ImportError(
            "gpuemu.triton needs the package triton: pip install triton", name="triton"
        ) from error
    with active(session):
        yield session
    unknown = set(session.outputs) - session.pointers
    if session.launches and unknown:
        raise ValueError(f"no kernel that was launched has an array named {', '.join(sorted(unknown))}")


_installed: list[tuple[contextlib.AbstractContextManager[Session], Session]] = []


def install(**options: Any) -> Session:
    """Run all Triton kernels of this process in the PTX machine from now on; `emulate` has the options."""
    if _installed:
        raise RuntimeError("Triton kernels are emulated already; call gpuemu.triton.uninstall() first")
    context = emulate(**options)
    session = context.__enter__()
    _installed.append((context, session))
    return session


def uninstall() -> None:
    """End what `install` began; nothing where it did not."""
    if _installed:
        context, _ = _installed.pop()
        context.__exit__(None, None, None)
