"""Compiled kernels in the PTX machine, on tensors of PyTorch."""

from __future__ import annotations

import pytest
from framework_packages import require

torch = require("torch")

from test_emulation import SCALE  # noqa: E402

import gpuemu  # noqa: E402
from gpuemu._launches import kernel_arguments as arguments  # noqa: E402


def test_a_kernel_computes_into_a_tensor() -> None:
    x, out = torch.randn(300, generator=torch.Generator().manual_seed(7)), torch.zeros(300)
    gpuemu.cuda.Kernel(SCALE, "scale")[3, 128](out, x, 2.5, x.numel())
    assert torch.equal(out, x * 2.5)


def test_parameters_and_views_are_passed_in_place() -> None:
    whole = torch.zeros(10, 40)
    gpuemu.cuda.Kernel(SCALE)[1, 32](whole[3, 4:36], torch.nn.Parameter(torch.ones(32)), 2.0, 32)
    assert whole.sum() == 64 and whole[3, 4:36].eq(2).all()


def test_bfloat16_keeps_its_memory() -> None:
    tensor = torch.zeros(8, dtype=torch.bfloat16)
    view = arguments.numpy_view(tensor, "x")
    view[2] = 1.5
    assert tensor[2] == 1.5 and view.dtype.name == "bfloat16"


def test_tensors_elsewhere_are_refused() -> None:
    with pytest.raises(TypeError, match="x is on the device meta"):
        arguments.numpy_view(torch.zeros(4, device="meta"), "x")
    with pytest.raises(TypeError, match="computed when it is read"):
        arguments.numpy_view(torch.zeros(4, dtype=torch.complex64).conj().imag, "x")
