"""Unmodified Triton launches in the PTX machine."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from framework_packages import require

import gpuemu
from gpuemu.errors import KernelError, KernelFindingsError

triton = require("triton")
tl = require("triton.language")


@triton.jit
def add(out_ptr, x_ptr, y_ptr, count, BLOCK: tl.constexpr):  # noqa: N803
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask) + tl.load(y_ptr + lanes, mask), mask)


@triton.jit
def add_without_mask(out_ptr, x_ptr, y_ptr, count, BLOCK: tl.constexpr):  # noqa: N803
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + lanes) + tl.load(y_ptr + lanes)
    tl.store(out_ptr + lanes, total, lanes < count)


@triton.jit
def scale(out_ptr, x_ptr, factor, shift, count, BLOCK: tl.constexpr):  # noqa: N803
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask) * factor + shift, mask)


@triton.heuristics({"BLOCK": lambda named: triton.next_power_of_2(named["columns"])})
@triton.jit
def row_sum(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, lanes < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(x.to(tl.float32)))


BLOCKS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((64, 1), (256, 4), (512, 8))]


@triton.autotune(configs=BLOCKS, key=["count"])
@triton.jit
def tuned(out_ptr, x_ptr, count, BLOCK: tl.constexpr):  # noqa: N803
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # Right up to 256 lanes only.
    mask = (lanes < count) & (tl.arange(0, BLOCK) < 256)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask), mask)


@triton.autotune(configs=BLOCKS, key=["count"], reset_to_zero=["out_ptr"])
@triton.jit
def tuned_sum(out_ptr, x_ptr, count, BLOCK: tl.constexpr):  # noqa: N803
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + lanes, lanes < count, other=0.0)))


@triton.autotune(configs=BLOCKS[:2], key=["count"])
@triton.jit
def tuned_overrun(out_ptr, x_ptr, count, BLOCK: tl.constexpr):  # noqa: N803
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # No mask is needed where the count is a multiple of the block.
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes), lanes < count)


@triton.jit
def printing(x_ptr, count):
    tl.device_print("count is ", count)
    tl.device_assert(count < 10, "too many")
    tl.store(x_ptr, 1.0)


@triton.jit
def matmul(out_ptr, a_ptr, b_ptr, SIZE: tl.constexpr):  # noqa: N803
    rows, columns = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    a, b = tl.load(a_ptr + rows * SIZE + columns), tl.load(b_ptr + rows * SIZE + columns)
    tl.store(out_ptr + rows * SIZE + columns, tl.dot(a, b))


def numbers(count: int, dtype: Any = np.float32, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count).astype(dtype)


def grid(named: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(named["count"], named["BLOCK"]),)


@pytest.mark.parametrize("count", [1, 16, 1000, 1024])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int64])
def test_a_launch_computes_into_its_array(dtype: Any, count: int) -> None:
    x, y = numbers(count, dtype), numbers(count, dtype, seed=2)
    out = np.zeros(count, dtype)
    with gpuemu.triton.emulate(outputs=["out_ptr"]) as session:
        add[grid](out, x, y, count, BLOCK=256)
    assert np.array_equal(out, x + y)
    assert session.findings == [] and len(session.launches) == 1
    assert session.launches[0].grid == (-(-count // 256), 1, 1)


def test_arrays_that_are_not_aligned_get_a_variant_of_their_own() -> None:
    memory, y = numbers(1025), numbers(1024, seed=2)
    out = np.zeros(1024, np.float32)
    with gpuemu.triton.emulate() as session:
        for x in (memory[:1024], memory[1:]):
            add[grid](out, x, y, 1024, BLOCK=256)
            assert np.array_equal(out, x + y)
    assert session.findings == []


def test_a_missing_mask_is_found_at_its_line() -> None:
    x, y, out = numbers(1000), numbers(1000, seed=2), np.zeros(1000, np.float32)
    first = add_without_mask.fn.__code__.co_firstlineno
    with gpuemu.triton.emulate(), pytest.raises(KernelFindingsError) as caught:
        add_without_mask[grid](out, x, y, 1000, BLOCK=256)
    assert np.array_equal(out, x + y)
    found = caught.value.findings
    assert {(one.fault, one.buffer) for one in found} == {
        ("out_of_bounds", "x_ptr"),
        ("out_of_bounds", "y_ptr"),
    }
    assert {one.place.line for one in found} == {first + 3}
    assert all(one.place.file.endswith("test_kernels_triton.py") for one in found)
    with gpuemu.triton.emulate(raise_on_findings=False) as session:
        add_without_mask[grid](out, x, y, 1000, BLOCK=256)
    assert len(session.findings) == len(found)


def test_scalars_of_every_kind_arrive() -> None:
    x = numbers(100)
    out = np.zeros(100, np.float32)
    with gpuemu.triton.emulate():
        for factor, shift in ((2, 1), (16, 3), (0.5, -1), (np.float32(0.1), np.int32(7)), (True, 1 << 40)):
            scale[grid](out, x, factor, shift, 100, BLOCK=128)
            expected = x * np.float32(factor) + np.float32(shift)
            assert np.allclose(out, expected, rtol=1e-6), (factor, shift)


def test_one_array_may_be_read_and_written() -> None:
    x = numbers(300)
    before = x.copy()
    with gpuemu.triton.emulate() as session:
        add[grid](x, x, x, 300, BLOCK=128)
    assert np.array_equal(x, before + before) and session.findings == []


def test_heuristics_see_the_arguments() -> None:
    x, out = numbers(5 * 37).reshape(5, 37), np.zeros(5, np.float32)
    with gpuemu.triton.emulate():
        row_sum[(5,)](out, x, 37)
    assert np.allclose(out, x.sum(axis=1), rtol=1e-5, atol=1e-5)


def test_every_config_is_checked_and_compared() -> None:
    x, out = numbers(1000), np.zeros(1000, np.float32)
    with (
        gpuemu.triton.emulate() as session,
        pytest.warns(gpuemu.triton.ConfigsDisagreeWarning, match="BLOCK: 512"),
    ):
        tuned[grid](out, x, 1000)
    assert np.array_equal(out, x)
    assert [launch.config.split(",")[0] for launch in session.launches] == [
        "BLOCK: 64",
        "BLOCK: 256",
        "BLOCK: 512",
    ]
    assert [(one.argument, one.elements) for one in session.disagreements] == [("out_ptr", 488)]
    with gpuemu.triton.emulate(every_config=False) as session:
        tuned[grid](out, x, 1000)
    assert len(session.launches) == 1 and session.disagreements == []


def test_configs_begin_with_the_same_data() -> None:
    x, out = numbers(1000), np.full(1, 5.0, np.float32)
    with gpuemu.triton.emulate() as session:
        tuned_sum[grid](out, x, 1000)
    assert np.allclose(out, x.sum(), rtol=1e-4, atol=1e-4)
    assert len(session.launches) == 3 and session.disagreements == []


def test_findings_name_the_config() -> None:
    x, out = numbers(960), np.zeros(960, np.float32)
    with gpuemu.triton.emulate() as session, pytest.raises(KernelFindingsError) as caught:
        tuned_overrun[grid](out, x, 960)
    assert str(caught.value).startswith("tuned_overrun (BLOCK: 256, num_warps: 4")
    assert [len(launch.findings) > 0 for launch in session.launches] == [False, True]
    assert np.array_equal(out, x)


def test_what_a_kernel_prints_and_asserts(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(1, np.float32)
    with gpuemu.triton.emulate() as session:
        printing[(1,)](x, 5, debug=True)
        assert "count is: 5\n" in session.printed and session.printed in capsys.readouterr().out
        with pytest.raises(KernelError, match="too many") as caught:
            printing[(1,)](x, 50, debug=True)
    assert caught.value.code == "AssertionFailed"


def test_tensor_cores_are_those_that_are_asked_for() -> None:
    a, b = numbers(4096, np.float16).reshape(64, 64), numbers(4096, np.float16, seed=2).reshape(64, 64)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    results = []
    for name in ("a100", "h100", "ieee"):
        out = np.zeros((64, 64), np.float32)
        with gpuemu.triton.emulate(tensor_core=name, outputs=["out_ptr"]) as session:
            matmul[(1,)](out, a, b, SIZE=64)
        assert np.allclose(out, expected, rtol=1e-4, atol=1e-3) and session.findings == []
        results.append(out.tobytes())
    assert len(set(results)) == 3


def test_launches_are_refused_with_a_reason() -> None:
    x = numbers(32)
    with gpuemu.triton.emulate() as session:
        # As on a GPU: a grid without blocks is nothing to do.
        add[(0,)](x, x, x, 32, BLOCK=32)
        assert session.launches == []
        with pytest.raises(KernelError, match="grid"):
            add[(1 << 33,)](x, x, x, 32, BLOCK=32)
        with pytest.raises(TypeError, match="list"):
            add[(1,)](x, [1.0], x, 32, BLOCK=32)
    unknown = pytest.raises(ValueError, match="no kernel that was launched has an array named out")
    with unknown, gpuemu.triton.emulate(outputs=["out"]):
        add[(1,)](x, x, x, 32, BLOCK=32)
    with (
        pytest.raises(ValueError, match="'ampere' is not an architecture"),
        gpuemu.triton.emulate(target="ampere"),
    ):
        pass


def test_what_was_before_is_there_afterwards() -> None:
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    before = (triton.runtime.driver._active, JITFunction.run, Autotuner.run)
    x = numbers(32)
    with gpuemu.triton.emulate() as outer:
        with gpuemu.triton.emulate() as inner:
            add[(1,)](x.copy(), x, x, 32, BLOCK=32)
        add[(1,)](x.copy(), x, x, 32, BLOCK=32)
    assert len(outer.launches) == len(inner.launches) == 1
    assert before == (triton.runtime.driver._active, JITFunction.run, Autotuner.run)
    session = gpuemu.triton.install()
    with pytest.raises(RuntimeError, match="uninstall"):
        gpuemu.triton.install()
    add[(1,)](x.copy(), x, x, 32, BLOCK=32)
    gpuemu.triton.uninstall()
    gpuemu.triton.uninstall()
    assert len(session.launches) == 1
    assert before == (triton.runtime.driver._active, JITFunction.run, Autotuner.run)
