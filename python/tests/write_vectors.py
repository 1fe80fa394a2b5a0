"""Writes the test vectors that the Rust and the Python suites share.

    python python/tests/write_vectors.py            # writes testdata/*.json
    python python/tests/write_vectors.py --check    # exits 1 if the files on disk differ

`rng_vectors.json` holds what the NumPy mirror of the generator makes. `dtype_vectors.json` holds
conversions between float64 and the other floating-point dtypes (see `conversion_vectors.py`).
`reference_vectors.json` holds expected outputs of every built-in op (see `reference_vectors.py`); it
is compared by value, because exponentials differ in their last bit from one CPU to the next.
"""

from __future__ import annotations

import argparse
import json
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "python"))

from conversion_vectors import digest, dtype_vectors  # noqa: E402
from reference_vectors import matches, reference_vectors  # noqa: E402

from gpuemu import rng  # noqa: E402

RNG_PATH = REPOSITORY / "testdata" / "rng_vectors.json"
DTYPE_PATH = REPOSITORY / "testdata" / "dtype_vectors.json"
REFERENCE_PATH = REPOSITORY / "testdata" / "reference_vectors.json"

SEEDS = (0, 1, 42, 0x0123456789ABCDEF, (1 << 64) - 1)
DOMAINS = ("shape", "dtype", "layout", "values", "values/q", "data/input/0", "data/input/17", "data/größe/3")

DIMENSION_LISTS: dict[str, tuple[list[rng.Dimension], list[rng.CostTerm], int]] = {
    "matmul": (
        [rng.Dimension("M"), rng.Dimension("K", minimum=1, reduced=True), rng.Dimension("N")],
        [rng.CostTerm((0, 1)), rng.CostTerm((1, 2)), rng.CostTerm((0, 2)), rng.CostTerm((0, 1, 2), 8)],
        20_000,
    ),
    "rows": (
        [rng.Dimension("...0", maximum=64), rng.Dimension("H", choices=(3, 256, 1025), reduced=True)],
        [rng.CostTerm((0, 1)), rng.CostTerm((0, 1)), rng.CostTerm((0, 1), 8)],
        3_000,
    ),
    "attention": (
        [
            rng.Dimension("B", minimum=1, maximum=8),
            rng.Dimension("H", choices=(1, 2, 4, 8)),
            rng.Dimension("S", minimum=1, preferred=(64, 128, 127)),
            rng.Dimension("D", minimum=8, maximum=256, preferred=(64, 128), reduced=True),
        ],
        [rng.CostTerm((0, 1, 2, 3)), rng.CostTerm((0, 1, 2, 2), 8)],
        200_000,
    ),
    "equal": (
        [rng.Dimension(name, minimum=2, maximum=6) for name in ("A", "B", "C", "D")],
        [rng.CostTerm((0, 1, 2, 3))],
        1_000,
    ),
    "tight": (
        [rng.Dimension("M", minimum=5), rng.Dimension("N", choices=(0, 7, 9)), rng.Dimension("K")],
        [rng.CostTerm((0, 1, 2)), rng.CostTerm((), 0)],
        10,
    ),
    "huge": (
        # The product passes 64 bits, and only its saturation is within the budget.
        [rng.Dimension(name, maximum=1 << 40, preferred=(1 << 20, 1 << 33)) for name in ("A", "B", "C", "D")],
        [rng.CostTerm((0, 1, 2, 3), 3), rng.CostTerm((0,))],
        1 << 63,
    ),
    "saturated": (
        [rng.Dimension(name, maximum=1 << 40, preferred=(1 << 20, 1 << 33)) for name in ("A", "B", "C", "D")],
        [rng.CostTerm((0, 1, 2, 3)), rng.CostTerm((0, 1, 2, 3))],
        1 << 63,
    ),
    "none": ([], [rng.CostTerm(())], 0),
}


def stream_vectors() -> Iterator[dict[str, Any]]:
    """Yield the first words of streams."""
    for seed in SEEDS:
        for domain in DOMAINS:
            stream = rng.Stream(seed, domain)
            yield {
                "seed": str(seed),
                "domain": domain,
                "words": [f"0x{stream.next_word():016x}" for _ in range(4)],
            }


def seed_vectors(derive: Callable[[int, int], int]) -> Iterator[dict[str, str]]:
    """Yield seeds derived from a seed and a number."""
    for seed in SEEDS:
        for index in (0, 1, 1_000_003, (1 << 64) - 1):
            yield {"seed": str(seed), "index": str(index), "derived": str(derive(seed, index))}


def draw_vectors() -> Iterator[dict[str, Any]]:
    """Yield sequences of draws, each from one stream, in which every kind of draw uses one word."""
    for bound in (0, 1, 7, 1000, (1 << 63) + 1, (1 << 64) - 1):
        stream = rng.Stream(bound, "draws")
        yield {
            "kind": "below",
            "seed": str(bound),
            "arguments": [str(bound)],
            "drawn": [str(stream.below(bound)) for _ in range(8)],
        }
    for seed, weights in enumerate([[1], [0, 3, 0, 1], [2, 5, 3, 3, 3, 4, 0], [0, 0], [1 << 62, 1 << 61]]):
        stream = rng.Stream(seed, "draws")
        yield {
            "kind": "weighted",
            "seed": str(seed),
            "arguments": [str(weight) for weight in weights],
            "drawn": [str(stream.weighted(weights)) for _ in range(8)],
        }
    for seed, (numerator, denominator) in enumerate([(1, 2), (2, 3), (0, 5), (5, 5), (1, 0)]):
        stream = rng.Stream(seed, "draws")
        yield {
            "kind": "chance",
            "seed": str(seed),
            "arguments": [str(numerator), str(denominator)],
            "drawn": [str(int(stream.chance(numerator, denominator))) for _ in range(8)],
        }


def shape_vectors() -> Iterator[dict[str, Any]]:
    """Yield drawn sizes, with the word after them, which shows how many words the draw used."""
    for name, (dimensions, cost, budget) in DIMENSION_LISTS.items():
        for index in range(1 if not dimensions else 12):
            seed = rng.case_seed(len(name), index)
            stream = rng.Stream(seed, "shape")
            sizes = rng.draw_sizes(stream, dimensions, cost, budget)
            next_word = f"0x{stream.next_word():016x}"
            yield {"dimensions": name, "seed": str(seed), "sizes": sizes, "next_word": next_word}


def dimension_lists() -> dict[str, Any]:
    """Return the dims, cost terms and budgets that the drawn sizes refer to."""
    return {
        name: {
            "dimensions": [asdict(dimension) for dimension in dimensions],
            "cost": [asdict(term) for term in cost],
            "budget": str(budget),
        }
        for name, (dimensions, cost, budget) in DIMENSION_LISTS.items()
    }


def tensor_cases() -> Iterator[tuple[str, str, int]]:
    """Yield every dtype with every strategy: part of a block, one block, and several.

    Two dtypes also get more than the sixteen blocks that Rust advances together, and a few tensors
    are so large that Rust fills them on several cores.
    """
    for dtype in rng.DTYPES:
        counts = (5, 1024, 3000, 20_000) if dtype in ("float32", "bfloat16") else (5, 1024, 3000)
        for strategy in rng.STRATEGIES:
            for count in counts:
                yield dtype, strategy, count
    for dtype, strategy in (("float32", "default"), ("float32", "special"), ("float16", "regular")):
        yield dtype, strategy, 300_000


def tensor_vectors() -> Iterator[dict[str, Any]]:
    """Yield tensors, each with a seed of its own, so that the choices within a strategy vary."""
    for index, (dtype, strategy, count) in enumerate(tensor_cases()):
        seed, name = rng.case_seed(1024, index), ("input", "q", "weight")[index % 3]
        resolved = rng.resolve(strategy, seed)
        tensor = rng.fill(dtype, rng.recipe(resolved, dtype, seed, name), seed, name, count)
        yield {
            "dtype": dtype,
            "strategy": strategy,
            "resolved": resolved,
            "seed": str(seed),
            "input": name,
            "count": count,
            "sha256": digest(tensor),
        }


def range_vectors() -> Iterator[dict[str, Any]]:
    """Yield tensors of whole numbers in a range."""
    index = 0
    for dtype in ("int32", "int64", "uint8", "float32"):
        for strategy in ("regular", "boundary"):
            for low, high, count in (
                (0, 10, 3000),
                (3, 200, 1024),
                (5, 5, 5),
                (7, 8, 5),
                (0, 50_257, 20_000),
            ):
                seed = rng.case_seed(2048, index)
                index += 1
                tensor = rng.fill(dtype, rng.range_recipe(strategy, low, high), seed, "indices", count)
                yield {
                    "dtype": dtype,
                    "strategy": strategy,
                    "low": low,
                    "high": high,
                    "seed": str(seed),
                    "input": "indices",
                    "count": count,
                    "sha256": digest(tensor),
                }


def flag_vectors() -> Iterator[dict[str, Any]]:
    """Yield tensors of flags."""
    for index, dtype in enumerate(("bool", "bool", "bool", "bool", "uint8", "float16", "float32")):
        for count in (5, 3000):
            seed = rng.case_seed(4096 + count, index)
            tensor = rng.fill(dtype, rng.flag_recipe(seed, "mask"), seed, "mask", count)
            yield {
                "dtype": dtype,
                "seed": str(seed),
                "input": "mask",
                "count": count,
                "sha256": digest(tensor),
            }


def rng_vectors() -> dict[str, Any]:
    """Return everything in `rng_vectors.json`."""
    return {
        "case_seeds": list(seed_vectors(rng.case_seed)),
        "escalation_seeds": list(seed_vectors(rng.escalation_seed)),
        "streams": list(stream_vectors()),
        "draws": list(draw_vectors()),
        "dimension_lists": dimension_lists(),
        "shapes": list(shape_vectors()),
        "tensors": list(tensor_vectors()),
        "ranges": list(range_vectors()),
        "flags": list(flag_vectors()),
    }


def render(vectors: dict[str, Any]) -> str:
    """Return JSON with one vector a line, so that a change shows which vectors changed."""
    sections = []
    for name, section in vectors.items():
        if isinstance(section, list):
            lines = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in section)
            body = f"[\n{lines}\n ]"
        elif isinstance(section, dict):
            entries = ((key, json.dumps(entry, ensure_ascii=False)) for key, entry in section.items())
            body = "{\n" + ",\n".join(f"  {json.dumps(key)}: {entry}" for key, entry in entries) + "\n }"
        else:
            body = json.dumps(section)
        sections.append(f" {json.dumps(name)}: {body}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def main() -> int:
    """Write the files, or compare them with those on disk."""
    parser = argparse.ArgumentParser(description="Writes the test vectors that Rust and Python share.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    arguments = parser.parse_args()
    stale = False
    files: tuple[tuple[Path, dict[str, Any], Callable[[str, str], bool]], ...] = (
        (RNG_PATH, rng_vectors(), operator.eq),
        (DTYPE_PATH, dtype_vectors(), operator.eq),
        (REFERENCE_PATH, reference_vectors(), matches),
    )
    for path, vectors, same in files:
        text = render(vectors)
        name = path.relative_to(REPOSITORY)
        if not arguments.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
        elif not path.exists() or not same(path.read_text(encoding="utf-8"), text):
            print(f"{name} differs: run python python/tests/write_vectors.py")
            stale = True
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
