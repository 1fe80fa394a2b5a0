"""`python -m gpuemu.campaigns.command`: a campaign for the command line.

Reads what to do as one JSON object from stdin, and prints one JSON object a line: `progress` now and then, at the end
`report` or `error`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

from gpuemu.campaigns import campaign
from gpuemu.campaigns.driver import CampaignProgress
from gpuemu.errors import ClientError


def main() -> int:
    """Run the campaign; 2 if it could not be."""
    request: dict[str, Any] = json.loads(sys.stdin.read())
    try:
        found = campaign(
            request["ops"],
            request["iterations"],
            engine="ray",
            address=request["address"],
            workers=request["workers"],
            resources=request["resources"],
            seed=None if request["seed"] is None else int(request["seed"]),
            project=request["project"],
            resume=_resume(request["resume"]),
            minimize=request["minimize"],
            progress=_show,
            **request["settings"],
        )
    except ClientError as error:
        _print("error", {"message": error.message, "hint": error.hint})
        return 2
    except (TypeError, ValueError) as error:
        _print("error", {"message": str(error), "hint": None})
        return 2
    except KeyboardInterrupt:
        # What was kept stays: whoever started this says how to go on.
        _print("error", {"message": "the campaign was interrupted", "hint": None})
        return 2
    lost = [dataclasses.asdict(one) for one in found.lost]
    smallest = {op: str(case) for op, case in found.smallest.items()}
    _print("ended", {"report": found.plain, "lost": lost, "smallest": smallest})
    return 0


def _resume(value: str | bool) -> int | bool | None:
    return int(value) if isinstance(value, str) else value or None


def _show(progress: CampaignProgress) -> None:
    _print("progress", dataclasses.asdict(progress))


def _print(kind: str, value: Any) -> None:
    print(json.dumps({kind: value}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
