"""CUDA kernels in the PTX machine, without a GPU.

    kernel = gpuemu.cuda.Kernel("scale.cu", "scale")
    kernel[grid, block](out, x, 2.0, x.size)

The source is PTX, or CUDA C++ that nvcc or NVRTC compiles where one of them is installed. NumPy arrays and
CPU tensors are passed as pointers, numbers by the types of the kernel's parameters. Every access is checked;
findings are raised as `gpuemu.KernelFindingsError` at the end of the launch.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuemu import _native
from gpuemu._launches.kernel_arguments import Pointer, is_array, numpy_view, scalar_bytes
from gpuemu._launches.machine import extent, run
from gpuemu.emulation import KernelLaunch, MachineKeywords, MachineOptions, finish, raise_findings
from gpuemu.errors import KernelError

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Kernel"]

_ENTRY = re.compile(r"\.entry\s+([A-Za-z0-9_$%]+)")


class Kernel:
    """A kernel that can be launched, as `kernel[grid, block](...)` or `kernel[grid, block, shared](...)`."""

    name: str
    """The entry's name in the PTX."""
    ptx: str
    """What it was compiled to."""
    producer: str
    """`"as written"`, or the compiler and its version."""

    def __init__(
        self,
        source: str | os.PathLike[str],
        name: str | None = None,
        *,
        target: str = "sm_80",
        options: Sequence[str] = (),
        outputs: Sequence[int | str] = (),
        raise_on_findings: bool = True,
        **machine: Unpack[MachineKeywords],
    ) -> None:
        """Compile and decode a kernel.

        `source` is the text of PTX or CUDA C++, or the path of a `.ptx` or `.cu` file. `name` may be left out
        where there is one kernel, and be written as in the source where C++ made another name of it.
        `options` go to the compiler. `outputs` are places or names of parameters whose arrays the kernel only
        writes: reading what they held before is a finding, and so is an element that nothing wrote. The other
        options are those of `gpuemu.emulation.MachineOptions`, such as `checks` and `order`.
        """
        file, self.ptx, self.producer = _compiled(source, target, list(options))
        self.name = _entry_of(self.ptx, name, file)
        self._program = _native.KernelProgram.decode(file, self.ptx, self.name)
        self._outputs = frozenset(outputs)
        names = [parameter[0] for parameter in self.parameters]
        for output in self._outputs:
            if output not in names and output not in range(len(names)):
                raise ValueError(f"{self.name} has no parameter {output!r}; it has {', '.join(names)}")
        self._raises = raise_on_findings
        self._options = MachineOptions(**machine)

    @property
    def parameters(self) -> list[tuple[str, int, str]]:
        """Name, bytes and type of each parameter."""
        return self._program.parameters()

    def __getitem__(self, launch: Any) -> Callable[..., KernelLaunch]:
        """Return what launches the kernel with a grid, a block and bytes of dynamic shared memory."""
        if not isinstance(launch, tuple) or not 2 <= len(launch) <= 3:
            raise TypeError(
                f"{launch!r} is no grid and block; write kernel[grid, block] or kernel[grid, block, shared]"
            )
        grid, block = extent(launch[0], "grid"), extent(launch[1], "block")
        shared_bytes = int(launch[2]) if len(launch) == 3 else 0
        return lambda *values: self._launch(grid, block, shared_bytes, values)

    def _launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        values: Sequence[Any],
    ) -> KernelLaunch:
        parameters = self.parameters
        if len(values) != len(parameters):
            expected = ", ".join(f".{kind} {name}" for name, _, kind in parameters)
            raise KernelError(
                f"{self.name} takes {len(parameters)} arguments ({expected}), and {len(values)} were given",
                code="LaunchRefused",
            )
        arguments = [
            self._argument(place, *parameter, value)
            for place, (parameter, value) in enumerate(zip(parameters, values, strict=True))
        ]
        launch = run(self._program, self.name, grid, block, shared_bytes, arguments, self._options)
        if finish(launch, self._raises):
            raise_findings([launch])
        return launch

    def _argument(self, place: int, name: str, size: int, kind: str, value: Any) -> Pointer | bytes:
        if is_array(value):
            if size != 8:
                raise TypeError(f"argument {place} is an array; {name} takes {size} bytes of type {kind}")
            written = place in self._outputs or name in self._outputs
            return Pointer(name, numpy_view(value, name), "output" if written else "input_output")
        if value is None and size == 8:
            return bytes(8)
        if isinstance(value, (bytes, bytearray)):
            if len(value) != size:
                raise TypeError(f"argument {place} has {len(value)} bytes; {name} takes {size}")
            return bytes(value)
        return scalar_bytes(value, kind, size, f"argument {place} ({name})")


def _compiled(source: str | os.PathLike[str], target: str, options: list[str]) -> tuple[str, str, str]:
    """Return the name of the file in messages, the PTX and what made it."""
    text = os.fspath(source)
    if not isinstance(source, str) or ("\n" not in text and text.endswith((".ptx", ".cu"))):
        path = Path(text)
        if not path.is_file():
            raise KernelError(f"the source {path} is not there", code="NotCompiled")
        if path.suffix == ".cu":
            folder = path.absolute().parent
            return path.name, *_native.compile_cuda(folder, path.name, target, options, Path(sys.executable))
        return path.name, path.read_text(encoding="utf-8"), "as written"
    if re.search(r"^\s*\.version\b", text, re.MULTILINE):
        return "kernel.ptx", text, "as written"
    with tempfile.TemporaryDirectory(prefix="gpuemu-") as folder_name:
        Path(folder_name, "kernel.cu").write_text(text, encoding="utf-8")
        made = _native.compile_cuda(folder_name, "kernel.cu", target, options, Path(sys.executable))
    return "kernel.cu", *made


def _entry_of(ptx: str, name: str | None, file: str) -> str:
    """Return the entry that is meant, also where C++ has put a kernel's parameters into its name."""
    entries: list[str] = list(dict.fromkeys(_ENTRY.findall(ptx)))
    found = entries if name is None else [entry for entry in entries if entry == name]
    if name is not None and not found:
        mangled = re.compile(rf"_Z(N\w*?)?{len(name)}{re.escape(name)}(?![0-9])")
        found = [entry for entry in entries if mangled.match(entry)]
    if len(found) == 1:
        return found[0]
    wanted = (
        "has more or less than one kernel" if name is None else f"has {len(found) or 'no'} kernels '{name}'"
    )
    known = f"its entries are: {', '.join(entries)}" if entries else "it has no entry"
    hint = "name one of them" if entries else "a kernel is a .entry in PTX and __global__ in CUDA C++"
    raise KernelError(f"{file} {wanted}; {known}", code="LaunchRefused", hint=hint)
