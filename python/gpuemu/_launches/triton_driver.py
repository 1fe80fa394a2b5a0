"""A driver for Triton behind which there is no GPU but the PTX machine.

Triton compiles as for a chip, and hands what it compiled to the driver's launcher, with the arguments.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from triton import knobs, runtime
from triton.backends.compiler import GPUTarget
from triton.backends.driver import decompose_descriptor, expand_signature
from triton.runtime.autotuner import Autotuner
from triton.runtime.cache import get_cache_manager
from triton.runtime.jit import JITFunction

from gpuemu import _native
from gpuemu._launches.kernel_arguments import ADDRESS_UNIT, Pointer, is_array, numpy_view, scalar_bytes
from gpuemu._launches.machine import extent, run
from gpuemu._launches.triton_configs import run_every_config
from gpuemu.errors import KernelError

if TYPE_CHECKING:
    from gpuemu.triton import Session

_SHARED_BYTES = {80: 166_912, 86: 101_376, 87: 166_912, 89: 101_376, 90: 232_448}
"""Most bytes of shared memory of a block."""


class NumpyPointer:
    """A NumPy array as Triton wants its arguments: with an address and a dtype."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        """Stand for an array."""
        self.array = array
        self.dtype = array.dtype

    def data_ptr(self) -> int:
        """Return the address, which Triton looks at for its alignment."""
        address: int = self.array.ctypes.data
        return address

    def __getattr__(self, name: str) -> Any:
        """Let grids and hooks see the array's shape and whatever else they ask for."""
        return getattr(self.array, name)


def _as_triton_takes_it(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return NumpyPointer(value)
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is tuple:
        return tuple(_as_triton_takes_it(item) for item in value)
    return value


class Launcher:
    """A compiled kernel, as Triton calls it."""

    def __init__(self, source: Any, metadata: Any) -> None:
        """Take what was compiled: `source` knows the types of the arguments."""
        self.metadata = metadata
        self.names = list(source.signature)
        self.kinds = list(source.signature.values())
        self.described = getattr(metadata, "tensordesc_meta", None)

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: Any,
        function: Any,
        packed: Any,
        launch_metadata: Any,
        before: Callable[[Any], None] | None,
        after: Callable[[Any], None] | None,
        *values: Any,
    ) -> None:
        """Run one launch."""
        driver = runtime.driver.active
        if not isinstance(driver, EmulationDriver):
            raise KernelError(
                "this kernel was compiled for the emulation, which has ended", code="LaunchRefused"
            )
        if before is not None:
            before(launch_metadata)
        grid = extent((x, y, z), "grid")
        # Triton's own launcher passes over a grid without blocks.
        if math.prod(grid):
            self._launch(driver.session, grid, values)
        if after is not None:
            after(launch_metadata)

    def _launch(self, session: Session, grid: tuple[int, int, int], values: Sequence[Any]) -> None:
        metadata = self.metadata
        if int(getattr(metadata, "num_ctas", 1) or 1) > 1:
            raise KernelError(
                f"{metadata.name} needs clusters of blocks, which are not emulated", code="LaunchRefused"
            )
        program = _program(metadata.hash, metadata.name)
        parameters = program.parameters()
        flat = list(self._flat(values))
        arguments: list[Pointer | bytes] = []
        for (name, kind, value), (_, size, _) in zip(flat, parameters, strict=False):
            arguments.append(_argument(session, name, kind, value, size))
        for name in ("global_scratch", "profile_scratch")[: max(0, len(parameters) - len(flat))]:
            size = int(getattr(metadata, f"{name}_size", 0) or 0) * math.prod(grid)
            arguments.append(Pointer(name, _scratch(size), "input_output") if size else bytes(8))
        block = (32 * int(metadata.num_warps), 1, 1)
        launch = run(
            program,
            metadata.name,
            grid,
            block,
            int(metadata.shared),
            arguments,
            session.options,
            session._config,
        )
        session.finish(launch)

    def _flat(self, values: Sequence[Any]) -> Iterator[tuple[str, str, Any]]:
        """Return name, type and value of every argument that is no constant; tuples come in parts."""
        for name, kind, value in zip(self.names, self.kinds, values, strict=True):
            yield from self._parts(name, kind, value)

    def _parts(self, name: str, kind: Any, value: Any) -> Iterator[tuple[str, str, Any]]:
        if isinstance(kind, tuple):
            for place, (part, item) in enumerate(zip(kind, value, strict=True)):
                yield from self._parts(f"{name}[{place}]", part, item)
        elif kind.startswith("tensordesc"):
            if self.described:
                raise KernelError(
                    f"{name} is a descriptor for TMA, which is not emulated", code="LaunchRefused"
                )
            kinds = expand_signature([kind], None, "")
            yield from (
                (name, part, item) for part, item in zip(kinds, decompose_descriptor(value), strict=True)
            )
        elif kind != "constexpr":
            yield name, kind, value


def _scratch(size: int) -> npt.NDArray[np.uint8]:
    """Return memory that begins at a multiple of what any kernel asks for."""
    memory = np.zeros(size + ADDRESS_UNIT, np.uint8)
    start = -memory.ctypes.data % ADDRESS_UNIT
    return memory[start : start + size]


def _argument(session: Session, name: str, kind: str, value: Any, size: int) -> Pointer | bytes:
    if not kind.startswith("*"):
        return scalar_bytes(value, kind, size, name)
    if value is None:
        return bytes(size)
    # A tensor that is read as another dtype wraps the one that has the memory.
    array = value.array if isinstance(value, NumpyPointer) else value
    while not isinstance(array, np.ndarray) and hasattr(array, "base") and is_array(array.base):
        array = array.base
    if not is_array(array):
        raise TypeError(f"{name} is a {type(value).__name__}; pass a NumPy array or a tensor of the CPU")
    session.pointers.add(name)
    role = "output" if name in session.outputs else "input" if kind.startswith("*k") else "input_output"
    return Pointer(name, numpy_view(array, name), role)


@lru_cache(maxsize=256)
def _program(key: str, name: str) -> _native.KernelProgram:
    """Decode the PTX that Triton keeps of a compilation."""
    group = get_cache_manager(key).get_group(f"{name[:150]}.json") or {}
    paths = [path for file, path in group.items() if file.endswith(".ptx")]
    if not paths:
        raise KernelError(f"Triton keeps no PTX of {name}", code="NotCompiled", hint="its cache may be full")
    ptx = Path(paths[0]).read_text(encoding="utf-8")
    return _native.KernelProgram.decode(f"{name}.ptx", ptx, name)


class _Utilities:
    """What Triton asks of a chip."""

    def __init__(self, architecture: int) -> None:
        self.architecture = architecture

    def get_device_properties(self, device: Any) -> dict[str, int]:
        shared = _SHARED_BYTES.get(self.architecture, 101_376)
        return {
            "max_shared_mem": shared,
            "max_num_regs": 65_536,
            "multiprocessor_count": 108,
            "warpSize": 32,
            "sm_clock_rate": 1_410_000,
            "mem_clock_rate": 1_215_000,
            "mem_bus_width": 5_120,
        }

    def load_binary(
        self, name: str, binary: Any, shared: int, device: Any
    ) -> tuple[None, None, int, int, int]:
        # No module: there is nothing to unload when the kernel is collected, maybe under a real driver.
        return None, None, 0, 0, 1024

    def unload_module(self, module: Any) -> None:
        """Nothing was loaded."""


class EmulationDriver:
    """What Triton asks of a driver, without one."""

    launcher_cls = Launcher

    def __init__(self, session: Session) -> None:
        """Launch into a session."""
        self.session = session
        number = session.target.removeprefix("sm_").rstrip("af")
        if not session.target.startswith("sm_") or not number.isdecimal():
            raise ValueError(f"'{session.target}' is not an architecture; write it as in sm_80")
        self.architecture = int(number)
        self.utils = _Utilities(self.architecture)

    @staticmethod
    def is_active() -> bool:
        """Whether it can be used: always."""
        return True

    def get_current_target(self) -> Any:
        """Return what is compiled for."""
        return GPUTarget("cuda", self.architecture, 32)

    def get_current_device(self) -> str:
        """Return a name that is no device of a real driver: Triton keeps compiled kernels by it."""
        return f"gpuemu sm_{self.architecture}"

    def set_current_device(self, device: Any) -> None:
        """There is one."""

    def get_current_stream(self, device: Any = None) -> int:
        """Return the only stream."""
        return 0

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Return the architecture as two numbers."""
        return self.architecture // 10, self.architecture % 10

    def get_active_torch_device(self) -> Any:
        """Return where tensors have to be."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """Return PyTorch's functions for the CPU, `synchronize` among them."""
        import torch

        return torch.cpu

    def map_python_to_cpp_type(self, kind: str) -> str:
        """Return a type as it is: nothing here is written in C++."""
        return kind

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return something that runs what is to be timed once, and says that it took no time."""

        def run_once(
            kernel_call: Callable[[], Any], quantiles: Sequence[float] = (), **_: Any
        ) -> list[float]:
            kernel_call()
            return [0.0 for _ in quantiles]

        return run_once

    def get_empty_cache_for_benchmark(self) -> None:
        """There is no cache to empty."""

    def clear_cache(self, cache: Any) -> None:
        """There is no cache to empty."""


@contextlib.contextmanager
def active(session: Session) -> Iterator[None]:
    """Let Triton launch into a session."""
    if knobs.runtime.interpret:
        raise KernelError(
            "TRITON_INTERPRET is set: Triton makes kernels that only its own interpreter can run",
            code="LaunchRefused",
            hint="unset it before the module with the kernels is imported",
        )
    driver = EmulationDriver(session)
    config = runtime.driver
    before = config._active
    plain_run, tuned_run = JITFunction.run, Autotuner.run

    def run_on_arrays(kernel: Any, *values: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        values = tuple(_as_triton_takes_it(value) for value in values)
        named = {name: _as_triton_takes_it(value) for name, value in named.items()}
        return plain_run(kernel, *values, grid=grid, warmup=warmup, **named)

    def run_tuned(tuner: Any, *values: Any, **named: Any) -> Any:
        return run_every_config(session, tuner, values, named)

    config.set_active(driver)
    # An emulation inside of another one finds arrays that are wrapped already, and leaves them so.
    JITFunction.run, Autotuner.run = run_on_arrays, run_tuned
    try:
        yield
    finally:
        JITFunction.run, Autotuner.run = plain_run, tuned_run
        config.set_active(before)
