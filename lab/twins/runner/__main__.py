"""Puts pairs of twins through the doors of gpuemu: `cargo xtask twins` starts this once for each environment.

Prints a JSON object a line on standard output for each pair and door, and what it is at on standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import examples
import grown
from checking import by_check, by_pytest
from pair import DOORS, LANGUAGES, SIDES, Pair, PairError, Side, own_pairs
from project import by_project
from sanitizing import by_sanitize
from verdict import Verdict, row, short, unjudged

# How many pairs of a cell a short run takes: of lab/twins, and of the grown corpus.
SHORT_OWN, SHORT_GROWN = 2, 3

Judged = dict[str, Mapping[Side, Verdict]]


def main() -> int:
    """Judge the pairs of the cells that are named, or all of the languages that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="+", metavar="LANGUAGE/DOOR", help="what is run")
    parser.add_argument("--short", action="store_true", help="few pairs of each cell, the same in every run")
    arguments = parser.parse_args()
    try:
        for cell in arguments.cells:
            language, _, door = cell.partition("/")
            if language not in LANGUAGES or door not in DOORS:
                parser.error(f"{cell} is no LANGUAGE/DOOR")
            run_cell(language, door, arguments.short)
    except PairError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def run_cell(language: str, door: str, is_short: bool) -> None:
    """Judge all pairs of a language by one door."""
    pairs = [pair for pair in own_pairs(language) if door in pair.doors()]
    of_corpus: list[str] = []
    if language == "numpy" and door in ("check", "pytest"):
        more = grown.python_pairs()
        pairs += spread(more, SHORT_GROWN) if is_short else more
    elif door == grown.door_of(language):
        of_corpus = grown.names(language)
    shown = [one for one in examples.ALL if (one.language, one.door) == (language, door)]
    if is_short:
        own = [pair for pair in pairs if pair.source == "twins"]
        pairs = spread(own, SHORT_OWN) + [pair for pair in pairs if pair.source != "twins"]
        # The tests of the examples run all of them, and what corpus judges is judged by tests of Rust.
        of_corpus, shown = spread(of_corpus, SHORT_GROWN), []
    count = len(pairs) + len(of_corpus) + len(shown)
    if count == 0:
        return
    started = time.monotonic()
    print(f"{language}/{door}: {count} pairs", file=sys.stderr, flush=True)
    for pair, verdicts in _through(door, pairs):
        _print(row(pair, door, verdicts))
    if of_corpus:
        for judged in grown.judged(language, of_corpus):
            _print(judged)
    for example in shown:
        _print(examples.judged(example))
    print(f"{language}/{door}: {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """Return some of the items, from the first to the last of them."""
    if len(items) <= count:
        return list(items)
    return [items[place * (len(items) - 1) // (count - 1)] for place in range(count)]


def _through(door: str, pairs: Sequence[Pair]) -> list[tuple[Pair, Mapping[Side, Verdict]]]:
    """Return the verdicts of a door on each pair."""
    if not pairs:
        return []
    if door == "check":
        return [(pair, by_check(pair)) for pair in pairs]
    if door == "sanitize":
        return [(pair, _guarded(_sanitized, [pair])[pair.name]) for pair in pairs]
    together = by_pytest if door == "pytest" else by_project
    judged = _guarded(together, pairs)
    return [(pair, judged[pair.name]) for pair in pairs]


def _sanitized(pairs: Sequence[Pair]) -> Judged:
    return {pair.name: by_sanitize(pair) for pair in pairs}


def _guarded(judge: Callable[[Sequence[Pair]], Judged], pairs: Sequence[Pair]) -> Judged:
    """Return the verdicts, or that there are none where a program did not do what it was started for."""
    try:
        return judge(pairs)
    except Exception as error:  # Whatever it was, it is said of every pair that it concerns.
        trouble = unjudged(short(f"{type(error).__name__}: {error}"))
        return {pair.name: dict.fromkeys(SIDES, trouble) for pair in pairs}


def _print(one: Mapping[str, Any]) -> None:
    print(json.dumps(one), flush=True)


if __name__ == "__main__":
    sys.exit(main())
