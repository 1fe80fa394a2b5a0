"""Measures the Python package beside a peer, and prints rows of the benchmark table as JSON.

Run by `cargo xtask bench`, which builds the native module and names the daemon in GPUEMU_DAEMON. What cannot
be measured is said on standard error, and its row is missing; the others are still printed.
"""

from __future__ import annotations

import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE))

import numpy as np  # noqa: E402

INTERPRETERS = 15
FUZZ_ITERATIONS = 4000
ELEMENTS = 16 << 20


def main() -> int:
    """Print a row for everything that could be measured."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="gpuemu-bench-") as folder:
        os.environ["GPUEMU_HOME"] = str(Path(folder, "home"))
        os.chdir(folder)
        for measure in (import_time, client_side_fuzzing, validation, generation):
            try:
                rows.append(measure())
            except Exception as error:  # One broken part must not hide the others.
                print(f"{measure.__name__} could not be measured: {error!r}", file=sys.stderr)
        stop_daemon()
    print(json.dumps(rows))
    return 0


def import_time() -> dict[str, Any]:
    """How much longer an interpreter takes that imports gpuemu too."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}

    def interpreter(program: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)
        return time.perf_counter() - start

    programs = ["import numpy", "import numpy, gpuemu", "pass"]
    for program in programs:
        interpreter(program)
    # In turns, so that a machine that slows down does so for all of them.
    times = [[interpreter(program) for program in programs] for _ in range(INTERPRETERS)]
    numpy, both, bare = map(statistics.median, zip(*times, strict=True))
    return row(
        "import gpuemu after import numpy",
        "ms",
        (both - numpy) * 1e3,
        (numpy - bare) * 1e3,
        "import numpy",
        f"medians of {INTERPRETERS} fresh interpreters each; aim at most 150 ms",
        less_is_better=True,
    )


def client_side_fuzzing() -> dict[str, Any]:
    """How many cases of a callable a second are generated, run and judged."""
    import gpuemu

    client = gpuemu.Client()

    def fuzz(iterations: int) -> float:
        start = time.perf_counter()
        report = client.fuzz_op_client_side(
            "matmul",
            run_op=lambda a, b: a @ b,
            iterations=iterations,
            min_shape=[16, 16, 16],
            max_shape=[16, 16, 16],
            dtypes=["float32"],
        )
        seconds = time.perf_counter() - start
        if not report.all_passed or report.run is None:
            raise RuntimeError(f"a right matmul was flagged, or its results were not stored: {report}")
        return iterations / seconds

    fuzz(FUZZ_ITERATIONS // 10)
    ours = statistics.median(fuzz(FUZZ_ITERATIONS) for _ in range(3))
    left, right = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)
    multiplication = median_seconds(2000, lambda: left @ right)
    note = "16x16 NumPy matmul, judged with every check, all results stored durably; aim 2000"
    peer_name = "the bare matmul, judged by no one"
    return row("client-side fuzzing", "cases/s", ours, 1 / multiplication, peer_name, note)


def validation() -> dict[str, Any]:
    """How fast a large output of one's own is judged."""
    import gpuemu

    values = (np.arange(ELEMENTS, dtype=np.float32) % 2001) / np.float32(1000) - np.float32(1)
    clipped = np.maximum(values, 0)
    client = gpuemu.Client()

    def judge() -> None:
        if not client.validate_op("relu", {"input": values}, clipped).passed:
            raise RuntimeError("a right relu was flagged")

    gigabytes = (values.nbytes + clipped.nbytes) / 1e9
    ours = gigabytes / median_seconds(5, judge)
    peer_name = "base64 in JSON, same socket, Python's json, base64 and pynng"
    peer = encoded_validation_seconds(values, clipped)
    note = "64 MiB of input and 64 of output, the fp64 reference included; aim 1.5"
    name = "Client.validate_op, relu of 16 M float32"
    return row(name, "GB/s", ours, gigabytes / peer if peer else None, peer_name, note)


def encoded_validation_seconds(values: Any, clipped: Any) -> float | None:
    """What the documented messages cost a client that has nothing but a socket."""
    try:
        import pynng
    except ImportError as error:
        print(f"the peer of validation could not be measured: {error}", file=sys.stderr)
        return None

    def encoded(array: Any) -> dict[str, Any]:
        data = base64.b64encode(array.tobytes()).decode("ascii")
        return {"dtype": str(array.dtype), "shape": list(array.shape), "data": data}

    address = f"ipc://{os.environ['GPUEMU_HOME']}/gpuemu.sock"
    with pynng.Req0(dial=address, recv_timeout=600_000, send_timeout=600_000) as socket:
        socket.recv_max_size = 0

        def judge() -> None:
            message = {
                "type": "ValidateOp",
                "project": {"root": os.getcwd()},
                "op_name": "relu",
                "inputs": {"input": encoded(values)},
                "output": encoded(clipped),
            }
            socket.send(json.dumps(message).encode())
            if not json.loads(socket.recv())["result"]["passed"]:
                raise RuntimeError("a right relu was flagged")

        return median_seconds(3, judge)


def generation() -> dict[str, Any]:
    """How long a large tensor takes, beside NumPy's generator."""
    from gpuemu import rng

    generator = np.random.default_rng(1)
    ours = median_seconds(5, lambda: rng.generate_random_tensor((4096, 4096), "float32", seed=1))
    peer = median_seconds(5, lambda: generator.random((4096, 4096), dtype=np.float32))
    name = "gpuemu.rng.generate_random_tensor, 16 M float32"
    note = "values of the strategy `regular`, the same bytes on every machine"
    return row(name, "ms", ours * 1e3, peer * 1e3, "numpy.random.Generator.random", note, less_is_better=True)


def row(
    name: str,
    unit: str,
    ours: float,
    peer: float | None,
    peer_name: str,
    note: str,
    less_is_better: bool = False,
) -> dict[str, Any]:
    """Return a row of the table, in the form in which it is printed as JSON."""
    ratio = None
    if peer is not None and ours > 0 and peer > 0:
        ratio = peer / ours if less_is_better else ours / peer
    figures = {"name": name, "unit": unit, "ours": ours, "peer": peer}
    return {**figures, "peer_name": peer_name, "ratio": ratio, "note": note}


def median_seconds(repeats: int, work: Callable[[], object]) -> float:
    """Return the median of the seconds that `work` takes, after one run to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def stop_daemon() -> None:
    """Stop the daemon that a client may have started: its folder is about to go."""
    program = os.environ.get("GPUEMU_TEST_PROGRAM")
    if program:
        subprocess.run([program, "daemon", "stop"], capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
