"""Hands verdicts over to the daemon while the next cases run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpuemu.errors import ClientError

if TYPE_CHECKING:
    from gpuemu.client import Client


class Recorder:
    """Stores the results of one campaign under one run number, in a thread of its own.

    A daemon that cannot be reached is no reason to stop judging: what is not stored is said in `trouble`.
    """

    def __init__(self, client: Client, op: str, seed: int, settings: Mapping[str, Any]) -> None:
        """Start with nothing stored. `settings` is what cases are drawn from."""
        self.run: int | None = None
        self.trouble: str | None = None
        self._client, self._op, self._seed, self._settings = client, op, seed, settings
        self._results: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="gpuemu-recorder", daemon=True)
        self._thread.start()

    def __call__(self, results: list[str]) -> None:
        """Take results, each as JSON."""
        self._results.put(results)

    def close(self) -> None:
        """Wait until everything is stored."""
        self._results.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (results := self._results.get()) is not None:
            if self.trouble is not None:
                continue
            try:
                self.run = self._client.record_json(self._op, self._seed, self._settings, results, self.run)
            except ClientError as error:
                hint = "" if error.hint is None else f"; {error.hint}"
                self.trouble = f"results are not stored: {error.message}{hint}"
            except Exception as error:
                self.trouble = f"results are not stored: {type(error).__name__}: {error}"
