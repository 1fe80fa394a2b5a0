"""Sizes of dims, drawn by class: degenerate, tile residues, ragged multiples, primes, powers of
two and their neighbours, long reductions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuemu._cases.streams import Stream

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 31, 61, 127, 251, 509, 1021)

_LARGEST_COST = (1 << 64) - 1


@dataclass(frozen=True)
class Dimension:
    """A named dim and how its sizes are sampled."""

    name: str
    minimum: int = 0
    maximum: int = 4096
    choices: Sequence[int] = ()
    """If not empty, the only sizes there are."""
    preferred: Sequence[int] = ()
    """Sizes taken half of the time."""
    reduced: bool = False
    """Whether the op sums, compares or normalises along it: then long sizes are drawn too."""

    def allows(self, size: int) -> bool:
        """Whether a size is allowed."""
        return self.minimum <= size <= self.maximum and (not self.choices or size in self.choices)

    def smaller(self, size: int) -> int | None:
        """The next smaller size that a case over budget tries, or None if there is none."""
        if self.choices:
            return max((choice for choice in self.choices if 1 <= choice < size), default=None)
        floor = max(self.minimum, 1)
        return max(size // 2, floor) if size > floor else None


@dataclass(frozen=True)
class CostTerm:
    """One term of a case's cost: the product of some dims, given by index, over a divisor."""

    dimensions: Sequence[int]
    divisor: int = 1


def draw_size(stream: Stream, dimension: Dimension) -> int:
    """Draw one size of a dim."""
    chosen = stream.pick(dimension.choices)
    if chosen is not None:
        return chosen
    if dimension.preferred and stream.chance(1, 2):
        return dimension.preferred[stream.below(len(dimension.preferred))]
    size_class = stream.weighted((2, 5, 3, 3, 3, 4, 3 if dimension.reduced else 0))
    size = _SIZE_CLASSES[size_class](stream)
    return min(max(size, dimension.minimum), dimension.maximum)


def draw_sizes(
    stream: Stream, dimensions: Sequence[Dimension], cost: Sequence[CostTerm], budget: int
) -> list[int]:
    """Draw the sizes of all dims and shrink them until the case's cost is within the budget."""
    sizes = [draw_size(stream, dimension) for dimension in dimensions]
    distinct = stream.chance(1, 2)
    focus = stream.below(len(dimensions))
    if distinct:
        for index in range(1, len(sizes)):
            size = sizes[index]
            if size > 1 and size in sizes[:index] and dimensions[index].allows(size + 1):
                sizes[index] = size + 1
    while cost_of(sizes, cost) > budget:
        # The largest dim gives way first (of equals the one named first), the one in focus last.
        order = sorted(range(len(sizes)), key=lambda index: (index == focus, -sizes[index], index))
        for index in order:
            smaller = dimensions[index].smaller(sizes[index])
            if smaller is not None:
                sizes[index] = smaller
                break
        else:
            break
    return sizes


def cost_of(sizes: Sequence[int], cost: Sequence[CostTerm]) -> int:
    """Return what a case costs, saturating where a 64-bit count would."""
    total = 0
    for term in cost:
        product = 1
        for index in term.dimensions:
            product = min(product * sizes[index], _LARGEST_COST)
        total = min(total + product // max(term.divisor, 1), _LARGEST_COST)
    return total


def _degenerate(stream: Stream) -> int:
    return 0 if stream.chance(1, 4) else 1


def _tile_residue(stream: Stream) -> int:
    return (8 << stream.below(8)) - 1 + stream.below(3)


def _ragged_multiple(stream: Stream) -> int:
    tile = 8 << stream.below(5)
    return (2 + stream.below(4)) * tile + 1 + stream.below(tile - 1)


def _prime(stream: Stream) -> int:
    return _PRIMES[stream.below(len(_PRIMES))]


def _near_power_of_two(stream: Stream) -> int:
    return (1 << stream.below(11)) - 1 + stream.below(3)


def _small(stream: Stream) -> int:
    return 2 + stream.below(15)


def _long(stream: Stream) -> int:
    return 1024 + stream.below(3073)


_SIZE_CLASSES = (_degenerate, _tile_residue, _ragged_multiple, _prime, _near_power_of_two, _small, _long)
