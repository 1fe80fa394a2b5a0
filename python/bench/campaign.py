"""Measures campaigns on a Ray cluster of this machine, and prints rows of the benchmark table as JSON.

Run by `cargo xtask bench --only campaign` with a Python that has Ray. What one worker judges, what the driver
and the store keep, and how large a result is on its way: the figures of `docs/guides/campaigns.md`.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE))
os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import measure  # noqa: E402

CASES = 4000
PARTS = 16
KEPT_CASES = 64


def main() -> int:
    """Print a row for everything that could be measured."""
    with tempfile.TemporaryDirectory(prefix="gpuemu-bench-") as folder:
        os.environ["GPUEMU_HOME"] = str(Path(folder, "home"))
        os.chdir(folder)
        try:
            rows = campaigns()
        finally:
            measure.stop_daemon()
    print(json.dumps(rows))
    return 0


def campaigns() -> list[dict[str, Any]]:
    """Run the same campaign in one process, on one worker and on two, and keep ranges by themselves."""
    import ray

    import gpuemu

    client = gpuemu.Client()
    alone = _seconds(lambda: gpuemu.campaign(FUNCTIONS, CASES, seed=1, client=client))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    rows = []
    seconds = {}
    for workers in (1, 2):
        # The first is for the cluster to start its processes.
        for _ in range(2):
            on_ray: dict[str, Any] = {"engine": "ray", "workers": workers}
            run = functools.partial(gpuemu.campaign, FUNCTIONS, CASES, seed=1, client=client, **on_ray)
            seconds[workers] = _seconds(run)
        rows.append(
            measure.row(
                f"campaign on {workers} Ray worker{'s' if workers > 1 else ''}",
                "cases/s",
                CASES / seconds[workers],
                CASES / alone,
                "the same in one process",
                f"{CASES} cases of relu in float32, starting the workers included; {os.cpu_count()} cores",
            )
        )
    ray.shutdown()
    rows.append(_keeping(client, CASES / seconds[1]))
    return rows


def _keeping(client: Any, judged: float) -> dict[str, Any]:
    """Measure how many results a second the driver and the store keep, beside what one worker judges."""
    from gpuemu._runs.settings import settings_of
    from gpuemu.campaigns.store import CampaignStore
    from gpuemu.campaigns.work import CallableWork

    store = CampaignStore(client)
    status = store.begin(
        list(FUNCTIONS), {"iterations": KEPT_CASES * PARTS, "seed": "1"}, PARTS, client_side=True
    )
    work = CallableWork(
        list(FUNCTIONS.items()),
        settings_of("campaign", {}),
        "numpy",
        status.iterations,
        1,
        PARTS,
        status.report,
    )
    runner = work.open()
    parts = [runner.run(index, lambda *_: None) for index in range(1, PARTS + 1)]
    sizes = [len(json.dumps(part.report)) + len(json.dumps(part.results)) for part in parts]
    store.keep(status.run, parts[0])
    start = time.perf_counter()
    for part in parts:
        store.keep(status.run, part)
    seconds = time.perf_counter() - start
    results = sum(len(part.results) for part in parts)
    return measure.row(
        "results kept by one driver and one store",
        "results/s",
        results / seconds,
        judged,
        "what one worker judges",
        f"ranges of {KEPT_CASES} cases, {sum(sizes) / results:.0f} bytes a result; the ratio is how many "
        "such workers keep the driver busy",
    )


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    if not work().passed:
        raise RuntimeError("the campaign does not pass")
    return time.perf_counter() - start


def _relu(input: Any) -> Any:
    import numpy as np

    return np.maximum(input, 0)


FUNCTIONS = {"relu": _relu}

if __name__ == "__main__":
    sys.exit(main())
