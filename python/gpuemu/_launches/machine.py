"""Launches in the PTX machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuemu import _native
from gpuemu._launches.kernel_arguments import Pointer, native_arguments
from gpuemu.emulation import KernelLaunch, MachineOptions, launching_line
from gpuemu.errors import KernelError

_LARGEST = (1 << 32) - 1


def extent(value: Any, what: str) -> tuple[int, int, int]:
    """Return a grid or a block, given as a number or as up to three, with all three."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        sizes = [int(size) for size in values]
    except (TypeError, ValueError):
        raise TypeError(f"the {what} is {value!r}; give up to three whole numbers") from None
    if not 1 <= len(sizes) <= 3 or not all(0 <= size <= _LARGEST for size in sizes):
        raise KernelError(
            f"the {what} is {value!r}; give up to three whole numbers below 2^32", code="LaunchRefused"
        )
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def run(
    program: _native.KernelProgram,
    kernel: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int,
    arguments: Sequence[Pointer | bytes],
    options: MachineOptions,
    config: str | None = None,
) -> KernelLaunch:
    """Launch a kernel, write what it computed into its arrays and return what was seen."""
    if not 0 <= shared_bytes <= _LARGEST:
        raise KernelError(f"{shared_bytes} bytes of shared memory cannot be asked for", code="LaunchRefused")
    report = program.launch(grid, block, shared_bytes, native_arguments(arguments), options.to_json())
    file, line = launching_line() or (None, None)
    written = any(isinstance(argument, Pointer) and argument.role == "output" for argument in arguments)
    return KernelLaunch.seen(
        report,
        kernel=kernel,
        grid=grid,
        block=block,
        config=config,
        file=file,
        line=line,
        outputs_known=written and "init" in options.checks,
    )
