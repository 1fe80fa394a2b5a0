"""The expected outputs of the built-in ops: what must be true of them whatever formula made them."""

import json
import math
from collections import Counter

import numpy as np
import pytest
from reference_formulas import FORMULAS
from reference_vectors import matches, reference_vectors
from write_vectors import REFERENCE_PATH, render

TEXT = REFERENCE_PATH.read_text(encoding="utf-8")
CASES = json.loads(TEXT)["cases"]


def cases(op, **parameters):
    """Cases of an op with exactly these parameters."""
    return [case for case in CASES if case["op"] == op and dict(case["parameters"]) == parameters]


def tensor(case, name):
    given = case["inputs"][name]
    return np.array(given["values"], dtype=np.float64).reshape(given["shape"])


def output(case, shape, name="out"):
    return np.array(case["outputs"][name], dtype=np.float64).reshape(shape)


def finite_rows(op, **parameters):
    """Inputs and outputs, row by row, of rows of numbers that nothing is multiplied with or added to."""
    for case in cases(op, **parameters):
        if len(case["inputs"]) > 1:
            continue
        rows = tensor(case, "input")
        for x, y in zip(rows.reshape(-1, rows.shape[-1]), output(case, (-1, rows.shape[-1])), strict=True):
            if np.isfinite(x).all():
                yield x, y


def test_the_vectors_on_disk_are_those_that_the_writer_makes():
    assert matches(TEXT, render(reference_vectors()))


def test_every_op_has_enough_cases_and_the_file_stays_small():
    counts = Counter(case["op"] for case in CASES)
    assert counts.keys() == FORMULAS.keys()
    assert min(counts.values()) >= 6
    assert counts.total() >= 150
    assert len(TEXT) < 1_000_000


@pytest.mark.parametrize("field", ["values", "shape"])
def test_another_input_does_not_match(field):
    changed = json.loads(TEXT)
    changed["cases"][0]["inputs"]["q"][field][0] += 1
    assert not matches(json.dumps(changed), TEXT)


@pytest.mark.parametrize(("factor", "same"), [(1.0 + 1e-14, True), (1.0 + 1e-10, False), (-1.0, False)])
def test_outputs_match_within_their_tolerance(factor, same):
    changed = json.loads(TEXT)
    softmax = next(case for case in changed["cases"] if case["op"] == "softmax")
    softmax["outputs"]["out"][0] *= factor
    assert matches(json.dumps(changed), TEXT) == same


def test_a_case_less_or_another_class_of_number_does_not_match():
    changed = json.loads(TEXT)
    del changed["cases"][-1]
    assert not matches(json.dumps(changed), TEXT)
    changed = json.loads(TEXT)
    changed["cases"][0]["outputs"]["out"][0] = "NaN"
    assert not matches(json.dumps(changed), TEXT)


def test_inputs_are_exact_in_their_dtypes():
    for case in CASES:
        for name, given in case["inputs"].items():
            values = tensor(case, name)
            with np.errstate(over="ignore"):
                assert np.array_equal(values.astype(given["dtype"]), values, equal_nan=True), case["note"]


def test_rows_of_softmax_sum_to_one_and_their_logarithm_is_log_softmax():
    for _, y in finite_rows("softmax"):
        assert math.isclose(math.fsum(y), 1.0, rel_tol=1e-14)
        assert (y >= 0).all()
    for x, y in finite_rows("log_softmax"):
        assert math.isclose(math.fsum(np.exp(y)), 1.0, rel_tol=1e-13)
        assert np.allclose(y - y[0], x - x[0], rtol=1e-13, atol=1e-15 * np.abs(y).max())


def test_normalised_rows_have_the_length_that_they_should():
    for x, y in finite_rows("l2norm"):
        square = math.fsum(x**2)
        assert math.isclose(math.fsum(y**2), square / (square + 1e-12), rel_tol=1e-13)
    for op, mean in (("rmsnorm", 0.0), ("layernorm", 1.0)):
        for x, y in finite_rows(op):
            variance = np.mean((x - mean * np.mean(x)) ** 2)
            assert math.isclose(np.mean(y**2), variance / (variance + 1e-5), rel_tol=1e-9)
            assert abs(mean * np.mean(y)) < 1e-9


def test_rope_keeps_the_length_of_every_vector():
    for interleaved in ({}, {"interleaved": True}):
        for case in cases("rope", **interleaved):
            x = tensor(case, "input")
            y = output(case, x.shape)
            whole = np.isfinite(x).all(axis=-1)
            assert np.allclose(
                np.linalg.norm(y[whole], axis=-1), np.linalg.norm(x[whole], axis=-1), rtol=1e-13, atol=0
            )


@pytest.mark.parametrize("op", ["gelu", "gelu_tanh", "silu"])
def test_units_weighted_by_a_probability_add_up_to_their_argument(op):
    # f(x) = x*P(x) with P(x) + P(-x) = 1, so f(x) - f(-x) = x.
    for case in cases(op):
        x = tensor(case, "input")
        x = x[np.isfinite(x)]
        y, mirrored = FORMULAS[op](x).values, FORMULAS[op](-x).values
        assert np.allclose(y - mirrored, x, rtol=1e-15, atol=0)
        assert ((y > -0.3) & (y <= np.maximum(x, 0.0))).all()


def test_attention_is_a_mean_of_the_values_that_a_query_sees():
    for case in CASES:
        if case["op"] != "attention" or "mask" in case["inputs"] or not np.isfinite(tensor(case, "v")).all():
            continue
        q, v = tensor(case, "q"), tensor(case, "v")
        values = np.repeat(v, q.shape[1] // v.shape[1], axis=1)
        out = output(case, q.shape)
        slack = 1e-12 * np.abs(values).max()
        inside = (out >= values.min(axis=2, keepdims=True) - slack) & (
            out <= values.max(axis=2, keepdims=True) + slack
        )
        assert (inside | np.isnan(out)).all(), case["note"]
