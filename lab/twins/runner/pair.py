"""A pair: a right and a wrong twin, the op that they are, and what must be said of the wrong one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

TWINS = Path(__file__).resolve().parents[1]
ROOT = TWINS.parents[1]

Side = Literal["right", "wrong"]
SIDES: tuple[Side, Side] = ("right", "wrong")

LANGUAGES = ("numpy", "pytorch", "jax", "tensorflow", "triton", "cuda")
DOORS = ("check", "test", "sanitize", "launch-table", "pytest")
# Languages whose kernels are compiled and run in the PTX machine.
COMPILED = ("triton", "cuda")


class PairError(Exception):
    """A pair that is not written as it has to be."""


@dataclass(frozen=True)
class Pair:
    """What a file of lab/twins says, or what is made of a pair that lies elsewhere."""

    name: str
    language: str
    folder: Path
    """Where its module is imported from, and its sources are copied from."""
    module: str
    functions: Mapping[Side, str] = field(default_factory=lambda: {"right": "right", "wrong": "wrong"})
    source: str = "twins"
    """Who has it: `twins`, `grown` or `examples`."""
    op: str | None = None
    """A built-in op."""
    signature: str | None = None
    """Of an op of its own; the module's function `reference` says what is right."""
    tolerance: Mapping[str, tuple[float, float]] | None = None
    """By dtype, absolute and relative: for an op of its own, which has no bound."""
    dtypes: Sequence[str] | None = None
    sizes: Mapping[str, Any] = field(default_factory=dict)
    values: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    backward: bool = False
    """Whether it is the gradients that are wrong."""
    launches: str | None = None
    """What every call has to run, as `module:name`."""
    outputs: Sequence[str] = ()
    """Parameters of a Triton kernel that it only writes."""
    table: Mapping[str, Any] | None = None
    """A launch table: `grid`, `block`, `args`, and what else a `[[kernels]]` entry has."""
    sanitize: Mapping[str, Any] | None = None
    """One launch: `grid`, `block`, `args`."""
    checks: Sequence[str] = ()
    """One of them must report the wrong twin."""
    classes: Sequence[str] = ()
    """One of them must be what its bug is taken for, if any is named."""

    def doors(self) -> list[str]:
        """Return the doors that it goes through."""
        if self.language not in COMPILED:
            # A project has no setting for gradients.
            return ["check", "pytest"] if self.backward else ["check", "test", "pytest"]
        doors = ["check", "pytest"]
        if self.table is not None:
            doors.append("launch-table")
        if self.sanitize is not None:
            doors.append("sanitize")
        return doors

    def imported(self) -> ModuleType:
        """Return its module."""
        folder = str(self.folder)
        if folder not in sys.path:
            # Behind all others: the folder of a language has the name of a package, and packages come first.
            sys.path.append(folder)
        return importlib.import_module(self.module)


# What a file may say; the rest of a pair follows from where the file lies.
_KEYS = frozenset(Pair.__dataclass_fields__) - {
    "name",
    "language",
    "folder",
    "module",
    "functions",
    "source",
}


def read_pair(path: Path, language: str) -> Pair:
    """Read the pair of a file."""
    pair = Pair(path.stem, language, path.parent, path.stem)
    module = pair.imported()
    said = getattr(module, "PAIR", None)
    if not isinstance(said, dict):
        raise PairError(f"{path} has no dict PAIR")
    unknown = sorted(set(said) - _KEYS)
    if unknown:
        raise PairError(f"{path}: PAIR has {', '.join(unknown)}; it may have {', '.join(sorted(_KEYS))}")
    pair = Pair(path.stem, language, path.parent, path.stem, **said)
    needed = ["right", "wrong"] + (["reference"] if pair.signature is not None else [])
    missing = [name for name in needed if not callable(getattr(module, name, None))]
    if missing:
        raise PairError(f"{path} has no function {', '.join(missing)}")
    if (pair.op is None) == (pair.signature is None):
        raise PairError(f"{path}: PAIR needs an op or a signature, and not both")
    if not pair.checks:
        raise PairError(f"{path}: PAIR does not say which checks must report the wrong twin")
    return pair


def own_pairs(language: str) -> list[Pair]:
    """Return the pairs of lab/twins in a language, by name."""
    return [read_pair(path, language) for path in sorted((TWINS / language).glob("*.py"))]
