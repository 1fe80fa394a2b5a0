"""Compiled kernels in the PTX machine: arguments, launches and findings, from PTX as written."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gpuemu
from gpuemu._launches import kernel_arguments as arguments
from gpuemu.emulation import KernelFinding, KernelLaunch, MachineKeywords, MachineOptions, raise_findings
from gpuemu.errors import KernelError, KernelFindingsError

SCALE = """
.version 8.0
.target sm_80
.address_size 64

.visible .entry scale(
	.param .u64 scale_out,
	.param .u64 scale_in,
	.param .f32 scale_factor,
	.param .u32 scale_count
)
{
	.reg .pred %p<2>;
	.reg .f32 %f<3>;
	.reg .b32 %r<5>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [scale_out];
	ld.param.u64 %rd2, [scale_in];
	ld.param.f32 %f1, [scale_factor];
	ld.param.u32 %r1, [scale_count];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 bra $done;
	mul.wide.u32 %rd3, %r2, 4;
	add.s64 %rd4, %rd2, %rd3;
	add.s64 %rd5, %rd1, %rd3;
	ld.global.f32 %f2, [%rd4];
	mul.f32 %f2, %f2, %f1;
	st.global.f32 [%rd5], %f2;
$done:
	ret;
}
"""
"""out[i] = in[i] * factor for i below count."""

TWO = SCALE + SCALE.partition(".address_size 64")[2].replace("scale", "other")


def numbers(count: int = 300) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(count).astype(np.float32)


def finding(**fields: object) -> KernelFinding:
    whole = {
        "fault": "out_of_bounds",
        "message": "4 bytes behind the end of x_ptr",
        "occurrences": 3,
        **fields,
    }
    return KernelFinding.from_json(whole)


def test_a_kernel_computes_into_its_array() -> None:
    kernel = gpuemu.cuda.Kernel(SCALE, "scale")
    x, out = numbers(), np.zeros(300, np.float32)
    launch = kernel[3, 128](out, x, 2.5, x.size)
    assert np.array_equal(out, x * np.float32(2.5))
    assert (launch.kernel, launch.grid, launch.block) == ("scale", (3, 1, 1), (128, 1, 1))
    assert launch.findings == [] and launch.statistics.blocks == 3
    assert kernel.producer == "as written"
    names = [(name, size) for name, size, _ in kernel.parameters]
    assert names == [("scale_out", 8), ("scale_in", 8), ("scale_factor", 4), ("scale_count", 4)]


def test_a_read_behind_the_end_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "scale.ptx"
    path.write_text(SCALE)
    x, out = numbers(100), np.zeros(128, np.float32)
    with pytest.raises(KernelFindingsError, match="out_of_bounds") as caught:
        gpuemu.cuda.Kernel(path)[1, 128](out, x, 1.0, 128)
    found = caught.value.findings
    assert found[0].buffer == "scale_in" and found[0].offset == 400 and found[0].thread.lane == 100 % 32
    assert "ld.global.f32" in found[0].place.instruction
    lines = str(found[0]).splitlines()
    assert lines[0].startswith("out_of_bounds: read of 4 bytes outside of 'scale_in'")
    assert lines[1].startswith("  at PTX line ") and lines[2].startswith(
        "  by block (0, 0, 0), thread (100, 0, 0)"
    )
    assert lines[-1].endswith("28 times at this place") or "scale_in + 400" in lines[3]
    assert f"launched at {__file__}:" in str(caught.value)
    # What it computed is there nevertheless.
    assert np.array_equal(out[:100], x)
    launch = gpuemu.cuda.Kernel(path, raise_on_findings=False)[1, 128](out, x, 1.0, 128)
    assert len(launch.findings) == len(found)


def test_arrays_may_lie_anywhere_and_share_memory() -> None:
    kernel = gpuemu.cuda.Kernel(SCALE)
    memory = numbers(64)
    before = memory.copy()
    kernel[1, 32](memory, memory, 2.0, 32)
    assert np.array_equal(memory[:32], before[:32] * 2) and np.array_equal(memory[32:], before[32:])
    memory[...] = before
    # Neighbours that overlap by half: thread i writes what thread i + 16 does not read.
    kernel[1, 16](memory[16:48], memory[:32], 2.0, 16)
    assert np.array_equal(memory[16:32], before[:16] * 2) and np.array_equal(memory[:16], before[:16])


def test_an_output_that_is_not_written_is_a_finding() -> None:
    x, out = numbers(100), np.zeros(128, np.float32)
    kernel = gpuemu.cuda.Kernel(SCALE, outputs=["scale_out"])
    with pytest.raises(KernelFindingsError, match="never_written"):
        kernel[1, 128](out, x, 1.0, 100)
    assert kernel[1, 128](out[:100], x, 1.0, 100).findings == []
    with pytest.raises(ValueError, match="has no parameter 'out'; it has scale_out"):
        gpuemu.cuda.Kernel(SCALE, outputs=["out"])


def test_an_array_that_cannot_be_written_is_an_input() -> None:
    x, out = numbers(32), np.zeros(32, np.float32)
    x.flags.writeable = out.flags.writeable = False
    with pytest.raises(KernelFindingsError, match="read_only"):
        gpuemu.cuda.Kernel(SCALE)[1, 32](out, x, 1.0, 32)
    assert not out.any()


@pytest.mark.parametrize(
    ("launch", "values", "message"),
    [
        ((0, 32), None, "grid"),
        ((1, 2048), None, "block"),
        ((1, 32, 1 << 20), None, "shared memory"),
        ((1, 32), (None, None), "takes 4 arguments \\(.*scale_out.*\\), and 2 were given"),
    ],
)
def test_launches_that_make_no_sense_are_refused(launch: object, values: object, message: str) -> None:
    x = numbers(32)
    with pytest.raises(KernelError, match=message) as caught:
        gpuemu.cuda.Kernel(SCALE)[launch](*(values or (x.copy(), x, 1.0, 32)))
    assert caught.value.code == "LaunchRefused"


def test_a_null_pointer_is_a_finding() -> None:
    with pytest.raises(KernelFindingsError, match="unmapped"):
        gpuemu.cuda.Kernel(SCALE)[1, 32](numbers(32), None, 1.0, 32)


def test_an_unknown_instruction_is_refused_before_anything_runs() -> None:
    with pytest.raises(KernelError, match="kernel.ptx:3[0-9].*mul.nonsense") as caught:
        gpuemu.cuda.Kernel(SCALE.replace("mul.f32 ", "mul.nonsense.f32 "))
    assert caught.value.code == "NotDecoded"


def test_an_entry_is_found_by_its_name() -> None:
    assert gpuemu.cuda.Kernel(TWO, "other").name == "other"
    for name in (None, "third"):
        with pytest.raises(KernelError, match="its entries are: scale, other"):
            gpuemu.cuda.Kernel(TWO, name)
    mangled = SCALE.replace(".entry scale(", ".entry _Z5scalePfPKffj(")
    assert gpuemu.cuda.Kernel(mangled, "scale").name == "_Z5scalePfPKffj"


def test_arguments_are_checked_by_the_types_of_the_parameters() -> None:
    x = numbers(32)
    launch = gpuemu.cuda.Kernel(SCALE)[1, 32]
    with pytest.raises(TypeError, match="argument 3 \\(scale_count\\) is the float 32.0"):
        launch(x, x, 1.0, 32.0)
    with pytest.raises(TypeError, match="argument 2 is an array; scale_factor takes 4 bytes"):
        launch(x, x, x, 32)
    with pytest.raises(OverflowError, match="4294967296"):
        launch(x, x, 1.0, 1 << 32)
    with pytest.raises(TypeError, match="runs backwards"):
        launch(x[::-1], x, 1.0, 32)
    with pytest.raises(TypeError, match="no grid and block"):
        gpuemu.cuda.Kernel(SCALE)[32]


def test_numbers_have_the_bytes_of_their_type() -> None:
    made = arguments.scalar_bytes
    assert made(-2, "i32", 4, "n") == b"\xfe\xff\xff\xff"
    assert made((1 << 64) - 1, "u64", 8, "n") == b"\xff" * 8
    assert made(True, "u1", 1, "flag") == b"\x01"
    assert made(np.int64(5), "s32", 4, "n") == b"\x05\0\0\0"
    assert made(1, "fp32", 4, "x") == np.float32(1).tobytes()
    assert made(1e40, "f32", 4, "x") == np.float32(np.inf).tobytes()
    assert made(0.1, "fp16", 2, "x") == np.float16(0.1).tobytes()
    assert made(0.5, "b64", 8, "x") == np.float64(0.5).tobytes()
    # Triton's own launcher cuts off the rest of a bfloat16.
    cut = made(1.0 + 2**-8 + 2**-9, "bf16", 2, "x")
    assert np.frombuffer(cut, ml_dtypes.bfloat16)[0] == 1.0


def test_arrays_that_share_memory_become_one_buffer() -> None:
    memory = np.arange(64, dtype=np.float32)
    pointers = [
        arguments.Pointer("a", memory[8:16], "input_output"),
        arguments.Pointer("b", memory[:12], "output"),
        arguments.Pointer("c", memory[32:40].view(np.int16)[::2], "input"),
        arguments.Pointer("nothing", memory[:0], "input"),
    ]
    within, buffer, alone, empty = arguments.native_arguments([*pointers])
    assert within == (1, 32)
    assert buffer[:2] == ("b, a", "input_output") and buffer[2].size == 64 and buffer[4] == 4
    assert buffer[3] == memory.ctypes.data % 512
    assert alone[:2] == ("c", "input") and alone[2].size == 30 and alone[4] == 2
    assert empty[2].size == 0
    buffer[2].view(np.float32)[15] = -1.0
    assert memory[15] == -1.0


def test_functions_that_launch_take_every_option_of_the_machine() -> None:
    assert list(MachineKeywords.__annotations__) == [field.name for field in fields(MachineOptions)]
    with pytest.raises(TypeError, match="chekcs"), gpuemu.triton.emulate(chekcs=["race"]):  # type: ignore[call-arg]
        pass


def test_options_with_unknown_names_are_refused() -> None:
    for wrong, message in (
        ({"checks": ["memry"]}, "unknown check 'memry'"),
        ({"tensor_core": "b200"}, "unknown tensor core 'b200'; known: a100, h100, ieee"),
        ({"approximation": "fast"}, "unknown approximation"),
        ({"order": "random"}, "unknown order"),
    ):
        with pytest.raises(ValueError, match=message):
            MachineOptions(**wrong)
    with pytest.raises(TypeError, match="checks is the text 'memory'"):
        MachineOptions(checks="memory")


def test_findings_say_where_and_by_whom() -> None:
    found = finding(text="4 bytes behind the end of x_ptr\n  at k.py:9")
    assert str(found) == "out_of_bounds: 4 bytes behind the end of x_ptr\n  at k.py:9"
    launch = KernelLaunch("k", (1, 1, 1), (32, 1, 1), [found] * 7, 2, config="BLOCK: 64")
    with pytest.raises(KernelFindingsError) as caught:
        raise_findings([launch])
    text = str(caught.value)
    assert text.startswith("k (BLOCK: 64): 9 findings, grid (1, 1, 1)\n") and text.endswith("... and 4 more")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.findings == caught.value.findings and str(again) == text
    raise_findings([KernelLaunch("k", (1, 1, 1), (32, 1, 1), [])])


def test_what_a_launch_does_is_a_finding_of_the_case() -> None:
    kernel = gpuemu.cuda.Kernel(SCALE, "scale", outputs=["scale_out"])

    def one_too_many(input: np.ndarray) -> np.ndarray:
        out = np.empty(input.shape, np.float32)
        if out.size:
            kernel[-(-out.size // 128), 128](out, np.ascontiguousarray(input), 1.0, out.size + 1)
        return out

    def right(input: np.ndarray) -> np.ndarray:
        out = np.empty(input.shape, np.float32)
        if out.size:
            kernel[-(-out.size // 128), 128](out, np.ascontiguousarray(input), 1.0, out.size)
        return out

    def check(function: Any) -> Any:
        op = gpuemu.op("copy", "input[..., H] -> out[..., H]", lambda input: input, dtypes=["float32"])
        return gpuemu.check(op, function, cases=20, seed=1, raises=False)

    report = check(one_too_many)
    checks = {found.check for result in report.report.failures for found in result.failures}
    assert checks == {"out_of_bounds"}, report
    found = report.report.failures[0].failures[0]
    line = one_too_many.__code__.co_firstlineno + 3
    assert found.explanation.endswith(f"launched at {__file__}:{line}") and found.bug_class == "out_of_bounds"
    assert "outside of 'scale_in'" in found.explanation or "outside of 'scale_out'" in found.explanation
    assert found.places[-1]["line"] == line and found.places[0]["instruction"].startswith(("ld.", "st."))
    assert check(right).report.not_checked == []
    # What a launch does not look at, or leaves to the caller, is said.
    unseen = {"unwritten outputs", "stores out of bounds"}
    for options, missing in (
        ({"outputs": ["scale_out"], "checks": ["memory", "race"]}, {"unwritten outputs"}),
        ({}, {"unwritten outputs"}),
        ({"outputs": ["scale_out"], "raise_on_findings": False}, unseen),
    ):
        kernel = gpuemu.cuda.Kernel(SCALE, "scale", **options)
        assert set(check(right).report.not_checked) == missing, options


MEETINGS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry meetings(.param .u32 meetings_count)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	ld.param.u32 %r1, [meetings_count];
$again:
	bar.sync 0;
	sub.u32 %r1, %r1, 1;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $again;
	ret;
}
"""


def test_what_was_not_checked_is_never_passed() -> None:
    kernel = gpuemu.cuda.Kernel(MEETINGS)
    assert kernel[1, 32](1000).not_checked == []
    with pytest.raises(KernelError, match="meetings could not be checked: races") as caught:
        kernel[1, 32](1 << 20)
    assert caught.value.code == "NotChecked"
    launch = gpuemu.cuda.Kernel(MEETINGS, raise_on_findings=False)[1, 32](1 << 20)
    assert launch.findings == [] and len(launch.not_checked) == 1
