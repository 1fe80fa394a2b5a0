"""Cases of every built-in op with the outputs that its mathematical definition gives.

Inputs are exact in float32. They are whole numbers times powers of two, since only whole numbers are
drawn alike by every NumPy on every CPU. Parameters that a case does not name have their defaults,
which the signatures in `reference_formulas.py` repeat.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from reference_formulas import FORMULAS, Flags, Numbers, Reals

Record = dict[str, Any]

SEED = 22

DESCRIPTION = [
    "Expected outputs of every built-in op, in float64, from the definitions in reference_formulas.py.",
    "Two outputs agree where |a - b| <= 1e-12*|b| + 1e-14*scale + 1e-300. `scales` has the magnitude of the"
    " terms that cancel in an element, times how strongly the element follows them; it is left out where"
    " nothing cancels. 1e-300 is for results that underflow and so have few digits.",
    "Parameters that a case does not name have their defaults; optional tensors that it does not name are"
    " absent.",
]
RELATIVE, OF_SCALE, UNDERFLOW = 1e-12, 1e-14, 1e-300

NAN, INFINITY = math.nan, math.inf
LARGEST, SMALLEST = float(np.finfo(np.float32).max), 2.0**-149


class Draws:
    """Inputs of one op, from a stream of its own, so that cases of one op do not move another's."""

    def __init__(self, op: str) -> None:
        """Start the stream."""
        self.generator = np.random.default_rng([SEED, *op.encode()])

    def numbers(self, *shape: int, exponent: int = 2) -> Reals:
        """Return numbers with the 24 significant bits of float32 within ±2**exponent."""
        return np.ldexp(
            self.generator.integers(1 - 2**24, 2**24, size=shape).astype(np.float64), exponent - 24
        )

    def spread(self, *shape: int) -> Reals:
        """Return numbers with magnitudes from 2**-60 to 2**60."""
        return np.ldexp(self.numbers(*shape, exponent=0), self.generator.integers(-60, 61, size=shape))

    def shifted(self, *shape: int, shift: float = 1000.0, exponent: int = 2) -> Reals:
        """Return numbers within 2**exponent of `shift`, so that differences of them cancel."""
        return (shift + self.numbers(*shape, exponent=exponent)).astype(np.float32).astype(np.float64)

    def rows(self, width: int) -> Reals:
        """Return ordinary, large, tiny, subnormal, shifted and spread rows."""
        return np.stack(
            [
                self.numbers(width),
                self.numbers(width, exponent=7),
                self.numbers(width, exponent=40),
                self.numbers(width, exponent=-100),
                self.numbers(width, exponent=-125),
                self.shifted(width),
                self.shifted(width, shift=-30000.0),
                self.spread(width),
            ]
        )

    def whole(self, low: int, high: int, *shape: int) -> Numbers:
        """Return whole numbers from `low` below `high`."""
        return self.generator.integers(low, high, size=shape)


def encoded(number: float) -> float | str:
    """Return what JSON can hold: it has no NaN and no infinities."""
    if math.isnan(number):
        return "NaN"
    return number if math.isfinite(number) else ("Infinity" if number > 0 else "-Infinity")


def case(
    op: str,
    note: str,
    sizes: Record,
    inputs: dict[str, Numbers],
    parameters: Record | None = None,
    outputs: Sequence[str] = ("out",),
) -> Record:
    """Compute a case and write it down."""
    parameters = parameters or {}
    with np.errstate(all="ignore"):
        computed = FORMULAS[op](**inputs, **parameters)
    expected = computed if isinstance(computed, dict) else {"out": computed}
    tensors, dtypes = {}, {"target": "int64", "position": "int32", "mask": "bool"}
    for name, tensor in inputs.items():
        values = [encoded(value) for value in (tensor * 1 if name == "mask" else tensor).ravel().tolist()]
        tensors[name] = {"dtype": dtypes.get(name, "float32"), "shape": list(tensor.shape), "values": values}
    scales = {name: expected[name].scale for name in outputs}
    return {
        "op": op,
        "note": note,
        "sizes": sizes,
        "parameters": [list(parameter) for parameter in parameters.items()],
        "inputs": tensors,
        "outputs": {
            name: [encoded(value) for value in expected[name].values.ravel().tolist()] for name in outputs
        },
        "scales": {
            name: [value if math.isfinite(value) else 0.0 for value in scale.ravel().tolist()]
            for name, scale in scales.items()
            if scale is not None
        },
    }


def elementwise_case(op: str, note: str, input: Reals, **parameters: Any) -> Record:
    """Return a case of an op of which every dim belongs to `...`."""
    return case(op, note, {"batch": list(input.shape), "named": []}, {"input": input}, parameters)


def row_case(
    op: str,
    note: str,
    input: Reals,
    weight: Reals | None = None,
    bias: Reals | None = None,
    **parameters: Any,
) -> Record:
    """Return a case of an op whose last dim is H."""
    sizes = {"batch": list(input.shape[:-1]), "named": [["H", input.shape[-1]]]}
    given = {"input": input, "weight": weight, "bias": bias}
    return case(op, note, sizes, {name: x for name, x in given.items() if x is not None}, parameters)


def array(*values: float | Sequence[float]) -> Reals:
    """Return values as they would be in float32."""
    return np.array(values, dtype=np.float32).astype(np.float64)


def elementwise_cases() -> Iterator[Record]:
    """Yield cases of the ops that treat every element alone."""
    parameters: dict[str, list[Record]] = {
        "elu": [{"alpha": 0.5}, {"alpha": 2.25}, {"alpha": -1.0}],
        "leaky_relu": [{"negative_slope": 0.2}, {"negative_slope": 0.0}, {"negative_slope": -0.5}],
    }
    for op in ("elu", "gelu", "gelu_tanh", "leaky_relu", "relu", "sigmoid", "silu", "tanh"):
        draws = Draws(op)
        yield elementwise_case(op, "no dims", draws.numbers())
        yield elementwise_case(op, "ordinary", draws.numbers(17))
        yield elementwise_case(op, "where functions saturate", draws.numbers(3, 5, exponent=7))
        yield elementwise_case(op, "left tail", draws.shifted(9, shift=-36, exponent=5))
        yield elementwise_case(op, "large", draws.numbers(2, 4, exponent=40))
        yield elementwise_case(
            op, "tiny", np.stack([draws.numbers(6, exponent=-20), draws.numbers(6, exponent=-125)])
        )
        yield elementwise_case(op, "every magnitude", draws.spread(2, 3, 4))
        yield elementwise_case(op, "simple numbers", np.append(np.arange(-12, 13) / 2.0, -0.0))
        yield elementwise_case(
            op, "special numbers", array(NAN, INFINITY, -INFINITY, LARGEST, -LARGEST, SMALLEST, -SMALLEST)
        )
        for given in parameters.get(op, []):
            yield elementwise_case(op, "parameter", draws.numbers(12), **given)


SPECIAL_ROWS = array(
    [0.5, NAN, -1.5, 2.0],
    [0.5, INFINITY, -1.5, 2.0],
    [0.5, -INFINITY, -1.5, 2.0],
    [-INFINITY, 3.25, -INFINITY, -INFINITY],
    [INFINITY, 1.0, -INFINITY, 2.0],
    [-INFINITY] * 4,
    [NAN] * 4,
)


def row_cases() -> Iterator[Record]:
    """Yield cases of the ops along a last dim."""
    ops = ("cumsum", "l2norm", "layernorm", "log_softmax", "max", "mean", "rmsnorm", "softmax", "sum")
    for op in ops:
        draws = Draws(op)
        yield row_case(op, "no leading dims", draws.numbers(9))
        yield row_case(op, "rows of every magnitude", draws.rows(7))
        yield row_case(op, "one element a row", draws.rows(1).reshape(4, 2, 1))
        yield row_case(op, "long rows", np.stack([draws.numbers(67), draws.shifted(67)]))
        yield row_case(op, "three leading dims", draws.numbers(2, 1, 3, 5))
        yield row_case(op, "simple rows", array([0, 0, 0, 0], [7, 7, 7, 7], [-1, 2, -3, 4], [-5, -6, -7, -5]))
        yield row_case(op, "special rows", SPECIAL_ROWS)
        yield from parameter_cases(op, draws)


def parameter_cases(op: str, draws: Draws) -> Iterator[Record]:
    """Yield cases with what only one of the ops along a last dim has."""
    rows, weight, bias = draws.rows(5), draws.numbers(5), draws.numbers(5)
    weight[1] = 0.0
    if op == "max":
        yield row_case(op, "NaN is skipped", SPECIAL_ROWS, propagate_nan=False)
        yield row_case(op, "no NaN to skip", rows, propagate_nan=False)
    elif op in ("softmax", "log_softmax"):
        hidden = np.where(np.arange(5) % 2 == 0, -INFINITY, rows)
        yield row_case(op, "-Infinity beside numbers", hidden)
        yield row_case(op, "one element dwarfs the others", array([40, 0, 1], [0, 700, -1], [-750, -20, 0]))
    elif op in ("sum", "cumsum"):
        yield row_case(op, "no elements", draws.numbers(3, 0))
        yield row_case(op, "terms that cancel", np.concatenate([rows, -rows[:, ::-1]], axis=-1))
        if op == "cumsum":
            yield row_case(op, "exclusive", rows, exclusive=True)
            yield row_case(op, "reverse", rows, reverse=True)
            yield row_case(op, "exclusive and reverse", rows, exclusive=True, reverse=True)
            yield row_case(op, "no elements, exclusive", draws.numbers(3, 0), exclusive=True)
    elif op == "l2norm":
        yield row_case(op, "eps", rows, eps=0.5)
        yield row_case(op, "no eps", rows[:3], eps=0.0)
        yield row_case(op, "no eps and no length", array([0, 0], [3, 4]), eps=0.0)
        tiny = np.concatenate([rows, rows[:3] * 2.0**-64, np.zeros((1, 5))])
        for eps in (1e-12, 0.5):
            yield row_case(op, "eps outside of the root", tiny, eps=eps, eps_outside=True)
            yield row_case(op, "eps as a minimum of the squares", tiny, eps=eps, eps_is_minimum=True)
            yield row_case(
                op, "eps as a minimum of the length", tiny, eps=eps, eps_outside=True, eps_is_minimum=True
            )
    elif op == "rmsnorm":
        yield row_case(op, "weight", rows, weight)
        yield row_case(op, "weight and eps", rows, weight, eps=0.125)
        yield row_case(op, "1 + weight", rows, weight, unit_offset=True)
        yield row_case(op, "1 + weight, one element", rows[:, :1], weight[:1], unit_offset=True, eps=1e-6)
        yield row_case(op, "an offset of no weight", rows, unit_offset=True)
        yield row_case(op, "no eps and no length", array([0, 0], [3, 4]), eps=0.0)
        yield row_case(op, "weight with NaN and infinities", rows[:2], array(NAN, 1, INFINITY, 0, -INFINITY))
    elif op == "layernorm":
        yield row_case(op, "weight", rows, weight)
        yield row_case(op, "bias", rows, None, bias)
        yield row_case(op, "weight and bias", rows, weight, bias)
        yield row_case(op, "weight, bias and eps", rows, weight, bias, eps=0.125)
        yield row_case(op, "one element, bias", rows[:, :1], weight[:1], bias[:1])
        yield row_case(op, "no eps", rows[:3], eps=0.0)
        yield row_case(
            op, "bias with NaN and infinities", rows[:2], None, array(NAN, 1, INFINITY, 0, -INFINITY)
        )


def cross_entropy_cases() -> Iterator[Record]:
    """Yield cases of cross_entropy."""
    draws = Draws("cross_entropy")

    def one(note: str, input: Reals, target: Numbers) -> Record:
        sizes = {"batch": [], "named": [["N", input.shape[0]], ["V", input.shape[1]]]}
        return case("cross_entropy", note, sizes, {"input": input, "target": target})

    yield one("ordinary", draws.numbers(6, 5), draws.whole(0, 5, 6))
    yield one("rows of every magnitude", draws.rows(6), draws.whole(0, 6, 8))
    yield one("one class", draws.rows(1), np.zeros(8, dtype=np.int64))
    yield one("first and last class", draws.numbers(4, 9), np.array([0, 8, 8, 0]))
    yield one("long rows", np.stack([draws.numbers(90), draws.shifted(90)]), draws.whole(0, 90, 2))
    yield one("one row", draws.numbers(1, 3), np.array([1]))
    yield one("special rows", SPECIAL_ROWS, np.array([0, 2, 3, 1, 3, 0, 2]))
    yield one("a target of -Infinity", SPECIAL_ROWS[2:4], np.array([1, 3]))
    yield one(
        "a target that dwarfs the others", array([40, 0, 1], [0, 700, -1], [9, 9, 9]), np.array([0, 1, 2])
    )


def matmul_cases() -> Iterator[Record]:
    """Yield cases of matmul."""
    draws = Draws("matmul")

    def one(note: str, a: Reals, b: Reals) -> Record:
        named = [["M", a.shape[0]], ["K", a.shape[1]], ["N", b.shape[1]]]
        return case("matmul", note, {"batch": [], "named": named}, {"a": a, "b": b})

    yield one("one element", draws.numbers(1, 1), draws.numbers(1, 1))
    yield one("ordinary", draws.numbers(3, 4), draws.numbers(4, 5))
    yield one("long sums", draws.numbers(2, 65), draws.numbers(65, 3))
    yield one("outer product", draws.numbers(5, 1), draws.numbers(1, 4))
    yield one("no terms", draws.numbers(2, 0), draws.numbers(0, 3))
    yield one("whole numbers", draws.whole(-9, 10, 4, 6) * 1.0, draws.whole(-9, 10, 6, 2) * 1.0)
    yield one("rows of every magnitude", draws.rows(5), draws.numbers(5, 3))
    yield one("large by tiny", draws.numbers(3, 4, exponent=60), draws.numbers(4, 3, exponent=-70))
    yield one("every magnitude", draws.spread(3, 6), draws.spread(6, 3))
    yield one("special numbers", SPECIAL_ROWS, array([1, 0], [2, 0.5], [0, -1], [-1, 0.25]))


def rope_cases() -> Iterator[Record]:
    """Yield cases of rope."""
    draws = Draws("rope")

    def one(note: str, input: Reals, position: Numbers, **parameters: Any) -> Record:
        named = [[name, size] for name, size in zip("BSN", input.shape[:3], strict=True)] + [
            ["P", input.shape[-1] // 2]
        ]
        tensors = {"input": input, "position": position}
        return case("rope", note, {"batch": [], "named": named}, tensors, parameters)

    special = draws.numbers(1, 2, 2, 4)
    special[0, 0, 0, 0], special[0, 1, 0, 1], special[0, 1, 1, 3] = NAN, INFINITY, -INFINITY
    yield one("halves", draws.numbers(2, 3, 2, 6), draws.whole(0, 2048, 2, 3))
    yield one("neighbours", draws.numbers(2, 3, 2, 6), draws.whole(0, 2048, 2, 3), interleaved=True)
    yield one("base", draws.numbers(1, 3, 1, 8), draws.whole(0, 2048, 1, 3), base=500000.0)
    yield one(
        "base, neighbours", draws.numbers(1, 3, 1, 8), draws.whole(0, 64, 1, 3), base=10.0, interleaved=True
    )
    yield one("one pair", draws.numbers(1, 4, 2, 2), np.array([[0, 1, 2, 2047]]))
    yield one(
        "one pair, neighbours", draws.numbers(1, 4, 2, 2), np.array([[0, 1, 2, 2047]]), interleaved=True
    )
    yield one("position 0 changes nothing", draws.numbers(2, 1, 2, 4), np.zeros((2, 1), dtype=np.int64))
    yield one("large and tiny", draws.rows(8).reshape(2, 2, 2, 8), draws.whole(0, 100, 2, 2))
    yield one("special numbers", special, np.array([[0, 5]]))
    yield one("special numbers, neighbours", special, np.array([[3, 0]]), interleaved=True)


def swiglu_cases() -> Iterator[Record]:
    """Yield cases of swiglu."""
    draws = Draws("swiglu")

    def one(note: str, gate: Reals, up: Reals) -> Record:
        sizes = {"batch": list(gate.shape[:-1]), "named": [["H", gate.shape[-1]]]}
        return case("swiglu", note, sizes, {"gate": gate, "up": up})

    yield one("no leading dims", draws.numbers(9), draws.numbers(9))
    yield one("rows of every magnitude", draws.rows(5), draws.numbers(8, 5))
    yield one("factors of every magnitude", draws.numbers(8, 5), draws.rows(5))
    yield one("one element a row", draws.numbers(3, 2, 1), draws.numbers(3, 2, 1))
    yield one("where the gate saturates", draws.numbers(2, 9, exponent=7), draws.numbers(2, 9))
    yield one("zeros", array([0, -0.0, 1, -1]), array([1, -1, 0, -0.0]))
    yield one("special gates", SPECIAL_ROWS, draws.numbers(7, 4))
    yield one("special factors", draws.numbers(7, 4), SPECIAL_ROWS)


def attention_case(
    note: str,
    q: Reals,
    k: Reals,
    v: Reals,
    mask: Flags | None = None,
    outputs: Sequence[str] = ("out",),
    **parameters: Any,
) -> Record:
    """Return a case of attention."""
    (batches, heads, queries, width), (_, key_heads, keys, _) = q.shape, k.shape
    names, counts = (
        ("B", "H", "G", "M", "D", "N"),
        (batches, key_heads, heads // key_heads, queries, width, keys),
    )
    inputs: dict[str, Numbers] = {"q": q, "k": k, "v": v}
    if mask is not None:
        inputs["mask"] = mask
    sizes = {"batch": [], "named": [list(pair) for pair in zip(names, counts, strict=True)]}
    return case("attention", note, sizes, inputs, parameters, outputs)


def attention_cases() -> Iterator[Record]:
    """Yield cases of attention."""
    draws, both = Draws("attention"), ("out", "lse")

    def tensors(b: int, h: int, g: int, m: int, n: int, d: int) -> tuple[Reals, Reals, Reals]:
        return draws.numbers(b, h * g, m, d), draws.numbers(b, h, n, d), draws.numbers(b, h, n, d)

    def flags(m: int, n: int) -> Flags:
        drawn = draws.whole(0, 3, m, n) > 0
        drawn[:, 0] = True
        return drawn

    yield attention_case("plain", *tensors(1, 1, 1, 3, 4, 4))
    yield attention_case("batches and heads", *tensors(2, 3, 1, 2, 5, 3))
    yield attention_case("sum of exponentials", *tensors(1, 2, 1, 3, 6, 4), outputs=both)
    yield attention_case("three query heads a key head", *tensors(2, 2, 3, 2, 4, 3), outputs=both)
    yield attention_case("one key of width 1", *tensors(2, 1, 2, 3, 1, 1), outputs=both)
    yield attention_case("causal", *tensors(1, 2, 1, 5, 5, 3), causal=True, outputs=both)
    yield attention_case("causal, more keys", *tensors(1, 1, 2, 3, 6, 4), causal=True)
    yield attention_case("causal, fewer keys", *tensors(1, 1, 1, 6, 3, 4), causal=True)
    yield attention_case("window", *tensors(1, 1, 2, 6, 6, 3), causal=True, window=2, outputs=both)
    yield attention_case("window alone", *tensors(1, 1, 1, 5, 6, 3), window=2, outputs=both)
    yield attention_case(
        "window past the keys", *tensors(1, 1, 1, 6, 3, 2), causal=True, window=2, outputs=both
    )
    yield attention_case("softcap", *tensors(1, 2, 1, 3, 5, 4), softcap=2.0, outputs=both)
    yield attention_case("softcap that hardly bends", *tensors(1, 1, 1, 3, 5, 4), softcap=50.0)
    yield attention_case("mask", *tensors(2, 1, 2, 4, 5, 3), flags(4, 5), outputs=both)
    yield attention_case("mask and causal", *tensors(1, 1, 1, 4, 5, 3), flags(4, 5), causal=True)
    hidden = flags(4, 5)
    hidden[[0, 2]] = False
    yield attention_case("rows that see nothing", *tensors(1, 2, 1, 4, 5, 3), hidden, outputs=both)
    yield attention_case(
        "rows that see nothing are zero",
        *tensors(1, 2, 1, 4, 5, 3),
        hidden,
        masked_rows_zero=True,
        outputs=both,
    )
    yield attention_case("scale", *tensors(1, 1, 2, 3, 4, 4), scale=0.3, outputs=both)
    yield attention_case("scale below zero", *tensors(1, 1, 1, 3, 4, 4), scale=-0.25)
    yield attention_case(
        "everything at once",
        *tensors(2, 2, 2, 5, 5, 4),
        flags(5, 5),
        outputs=both,
        scale=0.75,
        causal=True,
        window=3,
        softcap=3.5,
        masked_rows_zero=True,
    )
    q, k, v = tensors(1, 2, 1, 3, 5, 4)
    yield attention_case("large scores", 16 * q, 16 * k, v, outputs=both)
    yield attention_case("tiny scores", q * 2.0**-60, k * 2.0**-60, v, outputs=both)
    yield attention_case("shifted keys", q, draws.shifted(1, 2, 5, 4, shift=100.0), v, outputs=both)
    yield attention_case("large values", q, k, draws.rows(5).reshape(1, 2, 5, 4), outputs=both)
    yield from special_attention_cases(q, k, v)


def special_attention_cases(q: Reals, k: Reals, v: Reals) -> Iterator[Record]:
    """Yield cases of attention with NaN and infinities."""
    both = ("out", "lse")
    mask = np.ones((3, 5), dtype=bool)
    mask[:, 1] = mask[2, 3] = False
    hidden_k, hidden_v = k.copy(), v.copy()
    hidden_k[0, :, 1], hidden_v[0, :, 1] = NAN, [NAN, INFINITY, -INFINITY, LARGEST]
    yield attention_case("NaN behind the mask", q, hidden_k, hidden_v, mask, outputs=both)
    yield attention_case("NaN beside visible keys", q, hidden_k, hidden_v, outputs=both)
    late_k, late_v = k.copy(), v.copy()
    late_k[0, 0, 2], late_v[0, 1, 2] = NAN, INFINITY
    yield attention_case("NaN that only the last query sees", q, late_k, late_v, causal=True, outputs=both)
    yield attention_case("NaN in a query", np.where(np.arange(3)[:, None] == 1, NAN, q), k, v, outputs=both)
    # Every component of the query is positive, so that a key of -Infinity has a score of -Infinity.
    low_k = k.copy()
    low_k[0, 0, 4] = low_k[0, 1, :] = -INFINITY
    yield attention_case("scores of -Infinity", np.abs(q), low_k, v, outputs=both)
    yield attention_case("scores of -Infinity, capped", np.abs(q), low_k, v, softcap=2.0, outputs=both)


def reference_vectors() -> Record:
    """Return everything in `reference_vectors.json`."""
    families = (
        attention_cases,
        cross_entropy_cases,
        elementwise_cases,
        matmul_cases,
        rope_cases,
        row_cases,
        swiglu_cases,
    )
    return {"description": DESCRIPTION, "cases": [record for family in families for record in family()]}


def agree(left: Sequence[float | str], right: Sequence[float | str], scale: Sequence[float] | None) -> bool:
    """Return whether two lists agree; NaN and infinities are strings and agree with themselves."""
    if len(left) != len(right):
        return False
    for a, b, size in zip(left, right, scale or [0.0] * len(left), strict=True):
        if isinstance(a, str) or isinstance(b, str):
            if a != b:
                return False
        elif abs(a - b) > RELATIVE * abs(b) + OF_SCALE * size + UNDERFLOW:
            return False
    return True


def matches(text: str, wanted: str) -> bool:
    """Return whether two files have the same cases, with outputs that agree.

    Exponentials differ in their last bit from one CPU to the next, so bytes cannot be compared.
    """
    old, new = json.loads(text), json.loads(wanted)
    if len(old["cases"]) != len(new["cases"]):
        return False
    for before, after in zip(old["cases"], new["cases"], strict=True):
        for field in ("outputs", "scales"):
            lists, expected = before.pop(field), after.pop(field)
            scales = expected if field == "scales" else after["scales"]
            if lists.keys() != expected.keys():
                return False
            for name, values in expected.items():
                if not agree(lists[name], values, scales.get(name)):
                    return False
    return bool(old == new)
