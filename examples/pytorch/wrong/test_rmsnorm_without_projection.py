"""The forward passes; the gradients do not."""

from rmsnorm_without_projection import rmsnorm

import gpuemu


def test_forward():
    gpuemu.check("rmsnorm", rmsnorm, framework="pytorch", cases=40)


def test_backward():
    gpuemu.check("rmsnorm", rmsnorm, framework="pytorch", check_backward=True, cases=15)
