"""Whole tiles pass, as the one shape of a usual test has them; other widths do not."""

from layernorm_with_padding import layernorm

import gpuemu


def test_whole_tiles():
    with gpuemu.triton.emulate(outputs=["out_ptr"]):
        gpuemu.check("layernorm", layernorm, sizes={"H": [128, 256]}, cases=20, budget=4000, repeats=20)


def test_layernorm():
    with gpuemu.triton.emulate(outputs=["out_ptr"]):
        gpuemu.check("layernorm", layernorm, cases=20, budget=4000, repeats=20)
