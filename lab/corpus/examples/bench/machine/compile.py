"""Compile the kernels of the benchmarks for sm_80, as Triton does for the arguments of their launches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "triton")]

import kernels  # noqa: E402
from compiled_text import kept  # noqa: E402

FLOATS, HALVES = "*fp32", "*fp16"
KERNELS: list[tuple[Any, list[str], dict[str, int]]] = [
    (kernels.add, [FLOATS, FLOATS, FLOATS, "i32"], {"BLOCK": 1024}),
    (kernels.softmax, [FLOATS, FLOATS, "i32"], {"BLOCK": 1024}),
    (kernels.matmul, [HALVES, HALVES, HALVES, "i32", "i32", "i32"], {"BM": 64, "BN": 64, "BK": 32}),
    (kernels.flash_attention, [HALVES] * 4 + ["i32", "fp32"], {"BM": 64, "BN": 64, "D": 64}),
]

for kernel, types, constants in KERNELS:
    names = kernel.arg_names
    given = dict(zip(names, types, strict=False))
    signature = {name: given.get(name, "constexpr") for name in names}
    fixed = {(names.index(name),): value for name, value in constants.items()}
    # Addresses and sizes of the benchmarks are multiples of 16; the scale of attention is not.
    divisible = [name for name, kind in given.items() if kind != "fp32"]
    multiples = {(names.index(name),): [["tt.divisibility", 16]] for name in divisible}
    source = ASTSource(kernel, signature, fixed, multiples)
    compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"enable_fp_fusion": True})
    name = kernel.__name__
    text = kept(compiled.asm["ptx"], "lab/corpus/examples/bench/machine/kernels.py")
    (HERE / f"{name}.ptx").write_text(text)
    print(name, compiled.metadata.shared, "bytes of shared memory")
