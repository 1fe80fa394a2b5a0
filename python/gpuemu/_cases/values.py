"""Values of tensors by strategy.

A strategy is first turned into a recipe, in which everything is decided that one tensor needs;
a recipe then turns words into float64 values, whole arrays at a time, with integer operations,
IEEE `+ - * /`, floor and conversions only, so that the bytes are the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpuemu._arrays.dtypes import FLOAT_FORMATS, FloatFormat, dtype_name, power_of_two
from gpuemu._cases.streams import Reals, Stream, Words, bell, unit

STRATEGIES = (
    "regular",
    "boundary",
    "large",
    "tiny",
    "mixed",
    "shifted",
    "sparse",
    "clustered",
    "integers",
    "special",
    "adversarial",
    "default",
    "nan_injected",
)
"""Every strategy's name."""

ADVERSARIAL_MIX = {
    "regular": 6,
    "boundary": 2,
    "large": 2,
    "tiny": 3,
    "mixed": 3,
    "shifted": 3,
    "sparse": 2,
    "clustered": 2,
    "integers": 3,
    "special": 2,
}
"""What `adversarial` chooses among, with weights."""

_TILE_ELEMENTS = 64


class Recipe(Protocol):
    """A function from the words of consecutive elements to their values."""

    def values(self, words: Words, first_index: int) -> Reals:
        """Return the values of the elements from `first_index` on, one for each word."""
        ...


@dataclass(frozen=True)
class Uniform:
    """`low + width * unit`."""

    low: float
    width: float

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        return self.low + self.width * unit(words)


@dataclass(frozen=True)
class Bell:
    """Bell-shaped, of mean 0 and variance 1."""

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        return bell(words)


@dataclass(frozen=True)
class Exponents:
    """Plus or minus a mantissa in [1, 2) times two to one of `span` exponents from `lowest` on."""

    lowest: int
    span: int

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        powers = np.array([power_of_two(self.lowest + step) for step in range(self.span)])
        magnitudes: Reals = (1.0 + unit(words)) * powers[_choices(words, self.span)]
        return np.where(_low_bits(words, 1) == 1, -magnitudes, magnitudes)


@dataclass(frozen=True)
class Table:
    """Half of the elements from a table, the others uniform in [-10, 10)."""

    entries: tuple[float, ...]

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        chosen = np.array(self.entries)[_choices(words, len(self.entries))]
        return np.where(_low_bits(words, 1) == 1, _TEN.values(words, first_index), chosen)


@dataclass(frozen=True)
class Sparse:
    """One element in eight uniform in [-10, 10), or `repeated` if given; the others zero."""

    repeated: float | None

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        kept = _TEN.values(words, first_index) if self.repeated is None else self.repeated
        return np.where(_low_bits(words, 3) == 0, kept, 0.0)


@dataclass(frozen=True)
class Clustered:
    """One element in eight close to `top`, the others in [-10, 0)."""

    top: float

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        fractions = unit(words)
        return np.where(
            _low_bits(words, 3) == 0, self.top + (fractions - 0.5) * 0.02, -10.0 + 10.0 * fractions
        )


@dataclass(frozen=True)
class Integers:
    """Whole numbers from `-reach` to `reach`."""

    reach: int

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        reach = float(self.reach)
        return np.floor((2.0 * reach + 1.0) * unit(words)) - reach


@dataclass(frozen=True)
class Special:
    """Uniform in [-10, 10) with NaN, infinities, or whole tiles of minus infinity.

    `nan` and `infinite` say in one element of how many, 0 for none; `tiles` decides which quarter
    of the tiles is minus infinity, None for no tile.
    """

    nan: int = 0
    infinite: int = 0
    tiles: int | None = None

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        values = _TEN.values(words, first_index)
        draws = _low_bits(words, 11)
        if self.infinite:
            infinities = np.where(words & np.uint64(0x800) != 0, np.inf, -np.inf)
            values = np.where(draws % np.uint64(self.infinite) == 1, infinities, values)
        if self.nan:
            values[draws % np.uint64(self.nan) == 0] = np.nan
        if self.tiles is not None:
            elements = np.arange(first_index, first_index + len(words), dtype=np.uint64)
            salted = elements // np.uint64(_TILE_ELEMENTS) * np.uint64(0x9E3779B97F4A7C15)
            salted += np.uint64(self.tiles)
            values[salted >> np.uint64(62) == 0] = -np.inf
        return values


@dataclass(frozen=True)
class Range:
    """`count` whole numbers from `low` on; with `edges`, one element in four is an end."""

    low: float
    count: float
    edges: bool

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        values = self.low + np.floor(self.count * unit(words))
        if self.edges:
            high = self.low + max(self.count - 1.0, 0.0)
            ends = np.where(words & np.uint64(4) == 0, self.low, high)
            values = np.where(_low_bits(words, 2) == 0, ends, values)
        return values


@dataclass(frozen=True)
class Flags:
    """Zero or one; one element in `zeros` is zero."""

    zeros: int

    def values(self, words: Words, first_index: int) -> Reals:
        """See `Recipe.values`."""
        remainders: Words = (words >> np.uint64(12)) % np.uint64(self.zeros)
        return np.where(remainders != 0, 1.0, 0.0)


_TEN = Uniform(-10.0, 20.0)


def resolve(strategy: str, case_seed: int) -> str:
    """Return the strategy that a case really uses: `adversarial` picks one of its mix."""
    known = _known(strategy)
    if known != "adversarial":
        return known
    choice = Stream(case_seed, "values").weighted(tuple(ADVERSARIAL_MIX.values()))
    return tuple(ADVERSARIAL_MIX)[choice]


def recipe(strategy: str, dtype: Any, case_seed: int, input_name: str) -> Recipe:
    """Decide a recipe for a real-valued tensor from a resolved strategy."""
    known = _known(strategy)
    layout = FLOAT_FORMATS.get(dtype_name(dtype), FLOAT_FORMATS["float32"])
    stream = Stream(case_seed, f"values/{input_name}")
    if known in _LAYOUT_RECIPES:
        return _LAYOUT_RECIPES[known](stream, layout)
    return _PLAIN_RECIPES[known](stream)


def range_recipe(strategy: str, low: int, high: int) -> Recipe:
    """Decide a recipe for whole numbers in `low..high`."""
    return Range(float(low), float(max(high - low, 0)), edges=_known(strategy) == "boundary")


def flag_recipe(case_seed: int, input_name: str) -> Recipe:
    """Decide a recipe for a boolean tensor."""
    return Flags((2, 4, 8, 64)[Stream(case_seed, f"values/{input_name}").below(4)])


def _known(strategy: str) -> str:
    """Return the name of a strategy, or raise an error that lists those there are.

    `single_dtype_*` restricts the dtype, not the values, so it stands for `default`.
    """
    if strategy.startswith("single_dtype_"):
        return "default"
    if strategy not in STRATEGIES:
        raise ValueError(f"unknown value strategy '{strategy}'; known: {', '.join(STRATEGIES)}")
    return strategy


def _ten(stream: Stream) -> Recipe:
    return _TEN


def _nan_injected(stream: Stream) -> Recipe:
    return Special(nan=64)


def _regular(stream: Stream) -> Recipe:
    return (_TEN, Uniform(-1.0, 2.0), Bell())[stream.below(3)]


def _shifted(stream: Stream) -> Recipe:
    mean = (4.0, 100.0, -100.0, -10.0, 16.0)[stream.below(5)]
    deviation = (1.0, 0.125)[stream.below(2)]
    return Uniform(mean - deviation, 2.0 * deviation)


def _sparse(stream: Stream) -> Recipe:
    # The value is drawn even where it is not used, so that the word after it is the same.
    value = float(_TEN.values(np.array([stream.next_word()], dtype=np.uint64), 0)[0])
    return Sparse(value if stream.chance(1, 2) else None)


def _clustered(stream: Stream) -> Recipe:
    return Clustered((2.0, 8.0, 30.0)[stream.below(3)])


def _integers(stream: Stream) -> Recipe:
    return Integers((1, 2, 3, 8)[stream.below(4)])


def _special(stream: Stream) -> Recipe:
    kind = stream.below(4)
    if kind == 0:
        return Special(nan=256)
    if kind == 1:
        return Special(infinite=128)
    if kind == 2:
        return Special(tiles=stream.next_word())
    return Special(nan=512, infinite=256, tiles=stream.next_word())


def _boundary(stream: Stream, layout: FloatFormat) -> Recipe:
    step = layout.unit_roundoff * 2.0
    entries = [
        0.0,
        -0.0,
        layout.min_subnormal,
        -layout.min_subnormal,
        layout.min_normal - layout.min_subnormal,
        layout.min_normal,
        -layout.min_normal,
        1.0,
        -1.0,
        1.0 + step,
        1.0 - step / 2.0,
        -1.0 - step,
        2.0 - step,
        1.5 + step,
    ]
    if stream.chance(1, 2):
        largest = layout.max_value
        entries += [largest, -largest, largest / 2.0, -largest / 2.0, largest / 4.0]
    return Table(tuple(entries))


def _large(stream: Stream, layout: FloatFormat) -> Recipe:
    if stream.chance(1, 2):
        return _within(min(layout.max_value / 2.0, 1000.0))
    lowest = layout.max_exponent // 2
    return Exponents(lowest, layout.max_exponent - lowest)


def _tiny(stream: Stream, layout: FloatFormat) -> Recipe:
    if stream.chance(2, 3):
        return _within(power_of_two(-5 - stream.below(12)))
    return Exponents(layout.min_exponent - layout.mantissa_bits, layout.mantissa_bits + 4)


def _mixed(stream: Stream, layout: FloatFormat) -> Recipe:
    if stream.chance(2, 3):
        lowest, end = max(-10, layout.min_exponent), min(layout.max_exponent, 11)
    else:
        # The smallest exponent of every format is even, so the way its half rounds is no question.
        lowest, end = layout.min_exponent // 2, layout.max_exponent // 2
    return Exponents(lowest, end - lowest)


_PLAIN_RECIPES = {
    "regular": _regular,
    "shifted": _shifted,
    "sparse": _sparse,
    "clustered": _clustered,
    "integers": _integers,
    "special": _special,
    "adversarial": _ten,
    "default": _ten,
    "nan_injected": _nan_injected,
}

_LAYOUT_RECIPES = {"boundary": _boundary, "large": _large, "tiny": _tiny, "mixed": _mixed}


def _within(reach: float) -> Recipe:
    return Uniform(-reach, 2.0 * reach)


def _low_bits(words: Words, bits: int) -> Words:
    return words & np.uint64((1 << bits) - 1)


def _choices(words: Words, count: int) -> Words:
    """Return an index below `count` from bits 1 to 11 of every word."""
    return (_low_bits(words >> np.uint64(1), 11) * np.uint64(count)) >> np.uint64(11)
