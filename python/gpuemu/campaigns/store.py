"""The store that a campaign's parts are kept in: the daemon's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuemu.campaigns.work import Part
from gpuemu.client import Client


@dataclass(frozen=True)
class Status:
    """A campaign that was begun."""

    run: int
    seed: int
    ops: list[str]
    """The ops that were asked for; empty for all of the project."""
    planned_ops: list[str]
    """The ops that every range speaks of."""
    config: dict[str, Any]
    """What cases are drawn from, with their number and the base seed."""
    parts: int
    kept: list[int]
    client_side: bool
    report: dict[str, Any]
    """What the reports on all ranges have in common."""

    @property
    def iterations(self) -> int:
        """Cases of each op."""
        return int(self.config["iterations"])

    @property
    def planned(self) -> int:
        """Cases of all ops."""
        return self.iterations * len(self.planned_ops)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Status:
        """Return what an answer says."""
        return cls(
            run=int(value["run"]),
            seed=int(value["config"]["seed"]),
            ops=list(value["ops"]),
            planned_ops=list(value["planned_ops"]),
            config=dict(value["config"]),
            parts=int(value["parts"]),
            kept=[int(part) for part in value["kept"]],
            client_side=bool(value.get("client_side", False)),
            report=dict(value["report"]),
        )


class CampaignStore:
    """Campaigns of one project."""

    def __init__(self, client: Client) -> None:
        """Keep them with the daemon of a client."""
        self._client = client

    def begin(
        self, ops: Sequence[str], config: Mapping[str, Any], parts: int, client_side: bool = False
    ) -> Status:
        """Begin a campaign."""
        fields = {"ops": list(ops), "config": dict(config), "parts": parts, "client_side": client_side}
        return Status.from_json(self._ask("BeginCampaign", **fields)["campaign"])

    def get(self, run: int | None) -> Status:
        """Return a campaign that has not ended, the newest one if none is named."""
        fields = {} if run is None else {"run": str(run)}
        return Status.from_json(self._ask("GetCampaign", **fields)["campaign"])

    def keep(self, run: int, part: Part) -> None:
        """Keep a range: everything in it, or nothing."""
        self._ask("KeepPart", run=str(run), report=part.report, results=part.results)

    def keep_minimized(self, minimized: Mapping[str, Any]) -> None:
        """Keep the smallest form of a failure."""
        result = minimized["minimized"]
        inputs = minimized.get("inputs") or result.get("inputs") or {}
        edited = bool(minimized.get("values_edited", False))
        self._ask("KeepMinimized", minimized=result, inputs=inputs, values_edited=edited)

    def end(self, run: int) -> dict[str, Any]:
        """Join all ranges to the report on the run."""
        report: dict[str, Any] = self._ask("EndCampaign", run=str(run))["report"]
        return report

    def _ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self._client.ask_plain(kind, **fields)
