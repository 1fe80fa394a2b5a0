"""The fenced blocks of a page, and whether a program printed what one of them shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_FENCE = re.compile(r"(?P<indent> *)```(?P<language>[\w-]*)(?: \{(?P<marks>[^}]*)\})?(?P<rest>.*)")


class UnclosedBlockError(ValueError):
    """A page ends within a block."""


@dataclass(frozen=True)
class Block:
    """The text between two fences, and the line of the first one."""

    language: str
    #: What stands in braces after the language.
    marks: str | None
    line: int
    text: str
    #: What a block fenced as `text` says, with nothing but blank lines in between.
    shown: str | None


@dataclass(frozen=True)
class _Fenced:
    """The lines from a fence to the one that closes it, counted from 0; `end` is the one after that."""

    language: str
    marks: str | None
    start: int
    end: int
    text: str


def blocks_in(page: str) -> list[Block]:
    """Every fenced block, also those in lists, in order."""
    lines = page.splitlines()
    blocks = []
    for block, following in pairwise([*_fenced_in(lines), None]):
        if block is None:
            continue
        adjacent = following is not None and not "".join(lines[block.end : following.start]).strip()
        shown = following.text if following and adjacent and following.language == "text" else None
        blocks.append(Block(block.language, block.marks, block.start + 1, block.text, shown))
    return blocks


def _fenced_in(lines: list[str]) -> Iterator[_Fenced]:
    opening: tuple[int, re.Match[str]] | None = None
    for number, line in enumerate(lines):
        if opening is None:
            fence = _FENCE.fullmatch(line)
            opening = (number, fence) if fence else None
            continue
        start, first = opening
        indent = first["indent"]
        if line != f"{indent}```":
            continue
        text = "".join(f"{kept.removeprefix(indent)}\n" for kept in lines[start + 1 : number])
        yield _Fenced(first["language"], first["marks"], start, number + 1, text)
        opening = None
    if opening is not None:
        raise UnclosedBlockError(f"line {opening[0] + 1}: the block has no end")


def _pattern(shown: str) -> str:
    return ".*?".join(re.escape(part) for part in shown.strip().split("..."))


def agrees(shown: str, printed: str) -> bool:
    """Whether this was printed, where `...` stands for anything."""
    return re.fullmatch(_pattern(shown), printed.strip(), re.DOTALL) is not None


def occurs(shown: str, printed: str) -> bool:
    """Whether this is among what was printed, where `...` stands for anything."""
    return re.search(_pattern(shown), printed, re.DOTALL) is not None
