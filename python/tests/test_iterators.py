"""Loops over cases, shapes, dtypes and layouts."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_kernels import relu, softmax

import gpuemu
from gpuemu import _native, iterators
from gpuemu._arrays.dtypes import DTYPES
from gpuemu.errors import ClientError
from gpuemu.rng import case_seed, generate_random_tensor

pytest_plugins = ["daemon_fixtures"]


def test_cases_are_those_of_a_check() -> None:
    given: list[bytes] = []

    def kernel(input: Any) -> Any:
        given.append(input.tobytes())
        return softmax(input)

    drawn = list(iterators.cases("softmax", 25, seed=4, dtypes=["float16", "bfloat16"]))
    assert [case.seed for case in drawn] == [case_seed(4, index) for index in range(25)]
    assert {case.dtype for case in drawn} == {"float16", "bfloat16"}
    options: dict[str, Any] = {"dtypes": ["float16", "bfloat16"], "store": False, "repeats": 0}
    gpuemu.check("softmax", kernel, cases=25, seed=4, **options)
    for case in drawn:
        assert case["inputs"] is case.inputs and case.op == "softmax" and case.kwargs == {}
        array = case.inputs["input"]
        assert array.dtype.name == case.dtype == case.case["dtype"]
        assert array.tobytes() in given
        assert gpuemu.validate("softmax", case.inputs, softmax(array)).outcome in ("passed", "undetermined")
    assert any(not case.inputs["input"].flags.c_contiguous for case in drawn)


def test_the_same_seed_is_the_same_loop_and_none_is_another() -> None:
    def first(seed: int | None) -> list[bytes]:
        return [case.inputs["input"].tobytes() for case in iterators.cases("relu", 5, seed)]

    assert first(3) == first(3) and first(3) != first(4)
    assert first(None) != first(None)


def test_settings_are_those_of_a_check() -> None:
    settings: dict[str, Any] = {"sizes": {"H": [3, 5]}, "kwargs": {"eps": 0.5}, "dtypes": [np.float64]}
    for case in iterators.cases("rmsnorm", 10, seed=1, **settings):
        assert case.inputs["input"].shape[-1] in (3, 5) and case.kwargs["eps"] == 0.5
        assert case.dtype == "float64"
    with pytest.raises(TypeError) as caught:
        next(iterators.cases("relu", size=3))
    assert str(caught.value) == (
        "a loop over cases has no 'size'; what cases are drawn from: dtypes, layouts, values, sizes, "
        "min_shape, max_shape, budget, kwargs, precision, tolerance, invariants"
    )
    with pytest.raises(ClientError, match="there is no op 'rellu'\nhint: did you mean 'relu'?"):
        next(iterators.cases("rellu"))
    with pytest.raises(ValueError, match="the seed -1 is not a whole number of 64 bits"):
        next(iterators.cases("relu", seed=-1))


def test_ops_of_a_program_and_of_a_project_have_cases(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = gpuemu.op("own", "x[M,N] scale:float=2.0 -> out[M]", lambda x: x.sum(axis=-1))
    case = next(iterators.cases(own, seed=1))
    assert case.op == "own" and case.inputs["x"].ndim == 2 and case.kwargs == {"scale": 2.0}
    (project / "gpuemu.toml").write_text(
        '[project]\nname = "p"\nframework = "numpy"\n\n[[ops]]\nname = "mine"\nsignature = "y[N] -> out[N]"\n'
        'module = "nothing"\nreference = "nothing:mine"\n'
    )
    monkeypatch.chdir(project)
    assert [set(shape) for shape in iterators.shapes("mine", 2)] == [{"y"}, {"y"}]


def test_shapes_are_those_of_the_cases() -> None:
    drawn = list(iterators.shapes("matmul", 40, seed=1))
    assert drawn == [
        {name: array.shape for name, array in case.inputs.items()}
        for case in iterators.cases("matmul", 40, seed=1)
    ]
    assert all(shape["a"][1] == shape["b"][0] for shape in drawn)
    assert len({shape["a"] for shape in drawn}) > 20
    assert all(shape["a"][1] == 9 for shape in iterators.shapes("matmul", 5, sizes={"K": 9}))


def test_dtypes_are_those_of_numpy() -> None:
    floats = [dtype.name for dtype in iterators.dtypes()]
    assert floats == list(iterators.FLOAT_DTYPES)
    assert floats == ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"]
    assert [dtype.name for dtype in iterators.dtypes(floats_only=False)] == list(DTYPES)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16"])
def test_layouts_hold_the_same_elements_in_other_places(dtype: str) -> None:
    arrays = dict(iterators.layouts((6, 4), dtype, seed=5))
    assert set(arrays) <= set(_native.layout_names()) and len(arrays) >= 6
    expected = generate_random_tensor((6, 4), dtype, 5)
    for name, array in arrays.items():
        assert array.shape == (6, 4) and array.dtype.name == dtype
        rows = np.repeat(expected[:1], 6, axis=0) if name == "expanded" else expected
        assert array.tobytes() == rows.tobytes(), name
    strides = {name: array.strides for name, array in arrays.items()}
    assert len({*strides.values()}) >= 5 and arrays["contiguous"].flags.c_contiguous
    assert not arrays["transposed"].flags.c_contiguous and arrays["expanded"].strides[0] == 0
    assert [name for name, _ in iterators.layouts(5, seed=1)] == ["contiguous", "column_step", "offset"]
    assert [name for name, _ in iterators.layouts(())] == ["contiguous"]


def test_the_gaps_of_a_layout_show_a_kernel_that_ignores_strides() -> None:
    found = 0
    for _, array in iterators.layouts((6, 4), "float32", seed=2):
        length = array.size
        memory = np.lib.stride_tricks.as_strided(array, (length,), (array.itemsize,))
        found += not np.array_equal(relu(memory).reshape(array.shape), relu(array))
    assert found >= 3


def test_layouts_without_a_seed_differ() -> None:
    one, other = (next(iterators.layouts((4, 4)))[1].tobytes() for _ in range(2))
    assert one != other
    with pytest.raises(ValueError, match="unknown value strategy 'odd'"):
        next(iterators.layouts(3, strategy="odd"))
    with pytest.raises(ValueError, match="unknown dtype 'float99'"):
        next(iterators.layouts(3, "float99"))


def test_loops_end() -> None:
    assert len(list(itertools.islice(iterators.cases("relu", 3), 10))) == 3
