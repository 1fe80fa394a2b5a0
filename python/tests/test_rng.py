"""The NumPy mirror against the vectors that Rust is checked against too."""

import json
import subprocess
import sys

import numpy as np
import pytest
from conversion_vectors import digest
from write_vectors import REPOSITORY, RNG_PATH, render, rng_vectors

from gpuemu import rng
from gpuemu._cases import values as _values

VECTORS = json.loads(RNG_PATH.read_text(encoding="utf-8"))


def test_the_vectors_on_disk_are_those_that_the_writer_makes():
    assert render(rng_vectors()) == RNG_PATH.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("section", "derive"), [("case_seeds", rng.case_seed), ("escalation_seeds", rng.escalation_seed)]
)
def test_derived_seeds(section, derive):
    for vector in VECTORS[section]:
        assert derive(int(vector["seed"]), int(vector["index"])) == int(vector["derived"]), vector


def test_streams():
    for vector in VECTORS["streams"]:
        stream = rng.Stream(int(vector["seed"]), vector["domain"])
        assert [f"0x{stream.next_word():016x}" for _ in vector["words"]] == vector["words"], vector


def test_draws():
    for vector in VECTORS["draws"]:
        stream = rng.Stream(int(vector["seed"]), "draws")
        arguments = [int(argument) for argument in vector["arguments"]]
        draw = {
            "below": lambda stream, arguments: stream.below(*arguments),
            "weighted": lambda stream, arguments: stream.weighted(arguments),
            "chance": lambda stream, arguments: int(stream.chance(*arguments)),
        }[vector["kind"]]
        assert [str(draw(stream, arguments)) for _ in vector["drawn"]] == vector["drawn"], vector


def test_shapes():
    for vector in VECTORS["shapes"]:
        listed = VECTORS["dimension_lists"][vector["dimensions"]]
        dimensions = [rng.Dimension(**dimension) for dimension in listed["dimensions"]]
        cost = [rng.CostTerm(**term) for term in listed["cost"]]
        stream = rng.Stream(int(vector["seed"]), "shape")
        assert rng.draw_sizes(stream, dimensions, cost, int(listed["budget"])) == vector["sizes"], vector
        assert f"0x{stream.next_word():016x}" == vector["next_word"], vector


@pytest.mark.parametrize("dtype", rng.DTYPES)
def test_tensors(dtype):
    vectors = [vector for vector in VECTORS["tensors"] if vector["dtype"] == dtype]
    assert {vector["strategy"] for vector in vectors} == set(rng.STRATEGIES)
    for vector in vectors:
        seed, name = int(vector["seed"]), vector["input"]
        resolved = rng.resolve(vector["strategy"], seed)
        assert resolved == vector["resolved"]
        tensor = rng.fill(dtype, rng.recipe(resolved, dtype, seed, name), seed, name, vector["count"])
        assert digest(tensor) == vector["sha256"], vector


def test_range_and_flag_tensors():
    for vector in VECTORS["ranges"] + VECTORS["flags"]:
        seed, name = int(vector["seed"]), vector["input"]
        if "low" in vector:
            decided = rng.range_recipe(vector["strategy"], vector["low"], vector["high"])
        else:
            decided = rng.flag_recipe(seed, name)
        assert digest(rng.fill(vector["dtype"], decided, seed, name, vector["count"])) == vector["sha256"]


def test_the_tensor_vectors_take_every_branch_of_every_strategy():
    seen = set()
    for vector in VECTORS["tensors"]:
        seed, dtype = int(vector["seed"]), vector["dtype"]
        decided = rng.recipe(vector["resolved"], dtype, seed, vector["input"])
        match decided:
            case _values.Table(entries):
                branch = len(entries)
            case _values.Sparse(repeated):
                branch = repeated is None
            case _values.Special(nan, infinite, tiles):
                branch = (nan, infinite, tiles is None)
            case _values.Clustered(branch) | _values.Integers(branch):
                pass
            case _:
                branch = type(decided).__name__
        seen.add((vector["resolved"], branch))
    branches = {
        "regular": 2,
        "boundary": 2,
        "large": 2,
        "tiny": 2,
        "mixed": 1,
        "shifted": 1,
        "sparse": 2,
        "clustered": 3,
        "integers": 4,
        "special": 4,
        "default": 1,
        "nan_injected": 1,
    }
    assert {name: sum(strategy == name for strategy, _ in seen) for name in branches} == branches


def test_draws_stay_in_range():
    stream = rng.Stream(1, "shape")
    assert stream.below(0) == 0
    assert stream.pick([]) is None
    for _ in range(2000):
        assert 0 <= stream.below(7) < 7
        assert stream.pick("abc") in "abc"
        assert stream.weighted([0, 3, 0, 1]) in (1, 3)


def test_sizes_stay_within_limits_and_budget():
    dimensions = [rng.Dimension("M"), rng.Dimension("K", minimum=1, reduced=True)]
    cost = [rng.CostTerm((0, 1))]
    drawn = [rng.draw_sizes(rng.Stream(seed, "shape"), dimensions, cost, 5000) for seed in range(500)]
    assert all(rows * columns <= 5000 and columns >= 1 for rows, columns in drawn)
    assert any(rows == 0 for rows, _ in drawn)
    assert any(columns > 1024 for _, columns in drawn)


def test_a_longer_tensor_starts_with_the_shorter_one():
    long = rng.generate_random_tensor(600_000, seed=9)
    short = rng.generate_random_tensor(1500, seed=9)
    assert np.array_equal(long[:1500], short)


def test_the_last_blocks_of_a_large_tensor_are_their_own_streams():
    elements = 513 * rng.BLOCK_ELEMENTS
    tensor = rng.generate_random_tensor(elements, "float64", seed=5, strategy="default")
    word = rng.Stream(5, "data/input/512").next_word()
    assert tensor[512 * rng.BLOCK_ELEMENTS] == -10.0 + 20.0 * ((word >> 12) / 2**52)


def test_tiles_of_minus_infinity_follow_the_place_in_the_tensor():
    special = _values.Special(tiles=1)
    words = np.zeros(4096, dtype=np.uint64)
    whole = special.values(words, 0)
    assert np.array_equal(special.values(words[1024:], 1024), whole[1024:])
    assert 0 < np.isneginf(whole[::64]).sum() < 64


@pytest.mark.parametrize("dtype", rng.DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (2, 3, 4)])
def test_generate_random_tensor_has_the_shape_and_dtype_asked_for(dtype, shape):
    tensor = rng.generate_random_tensor(shape, dtype, seed=3)
    assert tensor.shape == shape
    assert tensor.dtype.name == dtype


def test_generate_random_tensor_depends_on_seed_and_name_and_nothing_else():
    tensor = rng.generate_random_tensor((4, 5), seed=3, name="q", strategy="adversarial")
    again = rng.generate_random_tensor([4, 5], np.float32, seed=3, name="q", strategy="adversarial")
    assert np.array_equal(tensor, again, equal_nan=True)
    plain = {"strategy": "default"}
    assert not np.array_equal(
        rng.generate_random_tensor(9, seed=3, **plain), rng.generate_random_tensor(9, seed=4, **plain)
    )
    assert not np.array_equal(
        rng.generate_random_tensor(9, name="k", **plain), rng.generate_random_tensor(9, name="v", **plain)
    )


def test_a_bool_tensor_has_both_flags():
    assert set(rng.generate_random_tensor(2000, "bool", seed=1).tolist()) == {True, False}


def test_integers_saturate_and_round_half_to_even():
    values = np.array([np.nan, np.inf, -np.inf, 2.5, 3.5, -0.5, 1e30, -1e30])
    for dtype in ("int8", "uint32", "int64", "uint64"):
        limits = np.iinfo(dtype)
        low, high = limits.min, limits.max
        assert rng.encode(values, dtype).tolist() == [0, high, low, 2, 4, 0, high, low]
    assert rng.encode(np.array([np.nan, -0.0, 0.5]), "bool").tolist() == [True, False, True]


def test_unknown_names_are_refused_with_those_that_exist():
    with pytest.raises(
        ValueError, match="unknown value strategy 'wild'; known: regular, boundary, .*nan_inj"
    ):
        rng.generate_random_tensor(3, strategy="wild")
    with pytest.raises(ValueError, match="unknown dtype 'float99'; known dtypes: bool, uint8, .*, float64"):
        rng.generate_random_tensor(3, "float99")
    with pytest.raises(ValueError, match="-1 is outside 0"):
        rng.case_seed(-1, 0)


def test_the_published_single_dtype_strategies_have_default_values():
    assert rng.resolve("single_dtype_float16", 0) == "default"


def test_a_missing_ml_dtypes_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert rng.generate_random_tensor(3, "float16").dtype == np.float16
    with pytest.raises(ImportError, match="dtype 'bfloat16' needs the package ml_dtypes"):
        rng.generate_random_tensor(3, "bfloat16")


def test_importing_the_package_loads_neither_numpy_nor_ml_dtypes():
    program = "import sys, gpuemu; sys.exit('numpy' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY / "python", check=False).returncode
        == 0
    )
    program = "import sys, gpuemu.rng; sys.exit('ml_dtypes' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY / "python", check=False).returncode
        == 0
    )


@pytest.mark.parametrize("strategy", rng.STRATEGIES)
@pytest.mark.parametrize("dtype", rng.DTYPES)
def test_the_native_tensor_and_its_mirror_are_the_same_bytes(dtype, strategy):
    # One block, the middle of the next one, and nothing at all.
    for seed, count in ((0, rng.BLOCK_ELEMENTS), (2**64 - 1, rng.BLOCK_ELEMENTS + 37), (5, 0)):
        native = rng.generate_random_tensor(count, dtype, seed, "weights", strategy)
        mirrored = rng.mirrored_tensor(count, dtype, seed, "weights", strategy)
        assert native.dtype == mirrored.dtype and native.tobytes() == mirrored.tobytes()


def test_without_a_seed_every_tensor_is_another():
    tensors = {rng.generate_random_tensor(64, seed=None, strategy="default").tobytes() for _ in range(4)}
    assert len(tensors) == 4


def test_a_seed_is_a_number_of_64_bits():
    largest = rng.generate_random_tensor(5, seed=np.uint64(2**64 - 1))
    assert np.array_equal(largest, rng.generate_random_tensor(5, seed=2**64 - 1))
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match=f"the seed {seed} is not a whole number of 64 bits"):
            rng.generate_random_tensor(3, seed=seed)
    with pytest.raises(TypeError, match="the seed 1.5 is not a whole number of 64 bits"):
        rng.generate_random_tensor(3, seed=1.5)


def test_the_published_single_dtype_strategies_make_default_values_too():
    names = ("default", "single_dtype_float16")
    first, second = (rng.generate_random_tensor(9, "float16", 3, strategy=name) for name in names)
    assert np.array_equal(first, second)
