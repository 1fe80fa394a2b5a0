"""PTX as it is kept: the code and its lines in the source, and nothing that changes with the machine."""

from __future__ import annotations

import re

_DEBUG_LABEL = re.compile(r"\$L__(tmp|func_begin|func_end)\d+:")
_LOCATION = re.compile(r"\.loc\s+(\d+) (\d+) (\d+)(?:,.*inlined_at (\d+) (\d+) (\d+))?")
_FILE = re.compile(r'\.file\s+\d+ "')

Place = tuple[int, ...]
"""File, line and column."""


def kept(ptx: str, source: str) -> str:
    """Return PTX without comments and debug sections, whose lines all are lines of `source`.

    What Triton's own library was inlined for is told as the place of the call: that is where a finding has to
    point to.
    """
    lines: list[str] = []
    resolved: dict[Place, Place] = {}
    last: Place | None = None
    inline, located = False, False
    for line in _without_sections(ptx):
        if line.strip().endswith(" inline asm"):
            inline, located = "// begin" in line, False
        code = line.split("//", 1)[0].rstrip()
        word = code.strip()
        if not word or _DEBUG_LABEL.fullmatch(word) or _FILE.match(word):
            continue
        location = _LOCATION.match(word)
        if location is None:
            lines.append(code)
            if word.endswith(":"):
                # What follows a label can be reached from elsewhere: its line is said again.
                last = None
            continue
        if inline and located:
            # The lines of inline assembly are counted on from that of the load or store that it is for.
            continue
        located = True
        numbers = tuple(int(number) for number in location.groups() if number is not None)
        own, caller = numbers[:3], numbers[3:]
        place = resolved.get(caller, caller) or own
        resolved[own] = place
        if place[0] != 1:
            raise ValueError(
                f"the PTX of {source} has a line of another file, and no call that it belongs to"
            )
        if place != last:
            lines.append(f"\t.loc\t1 {place[1]} {place[2]}")
            last = place
    lines.append(f'\t.file\t1 "{source}"')
    return "\n".join(lines) + "\n"


def _without_sections(ptx: str) -> list[str]:
    """Return the lines outside of `.section` blocks, each of which ends with a brace on a line of its own."""
    lines: list[str] = []
    inside = False
    for line in ptx.splitlines():
        if line.strip().startswith(".section"):
            inside = not line.rstrip().endswith("}")
        elif inside:
            inside = line.strip() != "}"
        else:
            lines.append(line)
    return lines
