"""Time Triton's interpreter on the kernels of the benchmarks: seconds of a launch, as JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parent))

import kernels  # noqa: E402
import numpy as np  # noqa: E402

REPEATS = 5


class Storage:
    """The memory of an array, as the interpreter asks for it."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def cpu(self) -> Storage:
        return self

    def copy_(self, _: Storage) -> Storage:
        return self


class Tensor:
    """An array, as the interpreter asks for its arguments."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.dtype = str(array.dtype)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> Storage:
        return Storage(self.array)

    def new_empty(self, *_: Any, **__: Any) -> Tensor:
        return Tensor(self.array)

    def set_(self, *_: Any) -> Tensor:
        return self

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)


def launches() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield each kernel with a launch of it, of the sizes that the benchmarks have."""
    generator = np.random.default_rng(0)
    x, y = (Tensor(row) for row in generator.standard_normal((2, 1 << 20), dtype=np.float32))
    out = Tensor(np.empty(1 << 20, np.float32))
    yield "add", lambda: kernels.add[(1024,)](x, y, out, 1 << 20, BLOCK=1024)
    rows = Tensor(generator.standard_normal((128, 1024), dtype=np.float32))
    weights = Tensor(np.empty((128, 1024), np.float32))
    yield "softmax", lambda: kernels.softmax[(128,)](weights, rows, 1024, BLOCK=1024)
    a, b = (Tensor(matrix) for matrix in generator.standard_normal((2, 512, 512)).astype(np.float16))
    c = Tensor(np.empty((512, 512), np.float16))
    tiles = {"BM": 64, "BN": 64, "BK": 32}
    yield "matmul", lambda: kernels.matmul[(8, 8)](a, b, c, 512, 512, 512, **tiles)
    q, k, v = (Tensor(heads) for heads in generator.standard_normal((3, 4, 512, 64)).astype(np.float16))
    o = Tensor(np.empty((4, 512, 64), np.float16))
    sizes = {"BM": 64, "BN": 64, "D": 64}
    yield "flash_attention", lambda: kernels.flash_attention[(8, 4)](q, k, v, o, 512, 0.125, **sizes)


def median_seconds(launch: Callable[[], Any]) -> float:
    """Return how long a launch takes, after one that is not timed."""
    launch()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        launch()
        times.append(time.perf_counter() - start)
    return sorted(times)[REPEATS // 2]


print(json.dumps({name: median_seconds(launch) for name, launch in launches()}))
