"""Seeds and streams of words: the part of the generator that comes before any value is made.

Seeds are derived with Blake2b, streams are xorshift128+ with the shifts 23, 17 and 26. A tensor
has one stream for each block of 1,024 elements, so that whole rows of blocks advance together
and no element needs a step of the interpreter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Choice = TypeVar("Choice")
Words = npt.NDArray[np.uint64]
Reals = npt.NDArray[np.float64]

BLOCK_ELEMENTS = 1024
"""Elements of a tensor that share one stream."""

_WORD_MASK = (1 << 64) - 1


def case_seed(base_seed: int, index: int) -> int:
    """Return the seed of case `index` of a run."""
    return _derived_seed(_word_bytes(base_seed) + _word_bytes(index))


def escalation_seed(case_seed: int, step: int) -> int:
    """Return the seed of the `step`-th extra case that a case escalates to."""
    return _derived_seed(_word_bytes(case_seed) + b"escalate" + _word_bytes(step))


class Stream:
    """The xorshift128+ stream of a case for one domain, such as `shape` or `data/input/0`."""

    __slots__ = ("_first", "_second")

    def __init__(self, case_seed: int, domain: str) -> None:
        """Start the stream that this seed and this domain stand for."""
        digest = hashlib.blake2b(_word_bytes(case_seed) + domain.encode(), digest_size=16).digest()
        self._first = int.from_bytes(digest[:8], "little")
        self._second = int.from_bytes(digest[8:], "little")
        if self._first == 0 and self._second == 0:
            # The all-zero state would stay zero for ever.
            self._first = 1

    def next_word(self) -> int:
        """Return the next 64-bit word."""
        mixed = self._first ^ ((self._first << 23) & _WORD_MASK)
        following = mixed ^ self._second ^ (mixed >> 17) ^ (self._second >> 26)
        word = (following + self._second) & _WORD_MASK
        self._first, self._second = self._second, following
        return word

    def below(self, bound: int) -> int:
        """Return a number in `0..bound`, or 0 when `bound` is 0. Always uses one word."""
        return (self.next_word() * bound) >> 64

    def pick(self, choices: Sequence[Choice]) -> Choice | None:
        """Return one of some choices, or None if there are none. Uses one word even then."""
        index = self.below(len(choices))
        return choices[index] if choices else None

    def weighted(self, weights: Sequence[int]) -> int:
        """Return an index into `weights`, drawn in proportion to them."""
        remaining = self.below(sum(weights))
        for index, weight in enumerate(weights):
            if remaining < weight:
                return index
            remaining -= weight
        return 0

    def chance(self, numerator: int, denominator: int) -> bool:
        """Return True with probability `numerator / denominator`."""
        return self.below(denominator) < numerator


def block_words(case_seed: int, input_name: str, first_block: int, count: int) -> Words:
    """Return the words of `count` elements of a tensor, starting with those of `first_block`.

    The loop runs over the rows of a block; each step advances the streams of all blocks.
    """
    blocks = -(-count // BLOCK_ELEMENTS)
    rows = min(count, BLOCK_ELEMENTS)
    first, second = _block_states(case_seed, input_name, first_block, blocks)
    words = np.empty((rows, blocks), dtype=np.uint64)
    for row in words:
        first ^= first << np.uint64(23)
        first ^= second ^ (first >> np.uint64(17)) ^ (second >> np.uint64(26))
        np.add(first, second, out=row)
        first, second = second, first
    return np.ascontiguousarray(words.T).reshape(-1)[:count]


def unit(words: Words) -> Reals:
    """Return numbers in [0, 1) from the upper 52 bits of words, exactly."""
    return ((words >> np.uint64(12)) | np.uint64(1023 << 52)).view(np.float64) - 1.0


def bell(words: Words) -> Reals:
    """Return numbers of mean 0 and variance 1: the centred sums of four 16-bit lanes.

    A sum of lanes is bell-shaped without a logarithm or a cosine, whose last bits differ
    between machines.
    """
    # The standard deviation of the sum is sqrt(4 * (65536**2 - 1) / 12).
    inverse_deviation = 2.642899038744166e-5
    lane = np.uint64(0xFFFF)
    total = (words & lane) + ((words >> np.uint64(16)) & lane)
    total += ((words >> np.uint64(32)) & lane) + (words >> np.uint64(48))
    return (total.astype(np.int64) - 131070).astype(np.float64) * inverse_deviation


def _block_states(case_seed: int, input_name: str, first_block: int, blocks: int) -> tuple[Words, Words]:
    prefix = hashlib.blake2b(_word_bytes(case_seed) + f"data/{input_name}/".encode(), digest_size=16)
    digests = []
    for block in range(first_block, first_block + blocks):
        hasher = prefix.copy()
        hasher.update(str(block).encode())
        digests.append(hasher.digest())
    states = np.frombuffer(b"".join(digests), dtype="<u8").reshape(blocks, 2).astype(np.uint64)
    first, second = states[:, 0].copy(), states[:, 1].copy()
    first[(first | second) == 0] = 1
    return first, second


def _derived_seed(message: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(message, digest_size=8).digest(), "little")


def _word_bytes(number: int) -> bytes:
    if not 0 <= number <= _WORD_MASK:
        raise ValueError(f"seed or index {number} is outside 0..2**64-1")
    return int(number).to_bytes(8, "little")
