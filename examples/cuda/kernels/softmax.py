"""The kernel of softmax.cu as a function, launched in the PTX machine."""

from pathlib import Path

import numpy as np

import gpuemu

BLOCKS, THREADS = 16, 128

# Compiled once, with this module. Parameter 0 is an output: it may not be read, and has to be filled.
KERNEL = gpuemu.cuda.Kernel(Path(__file__).with_name("softmax.cu"), "softmax", outputs=[0])


def softmax(input):
    """Return the softmax of every row."""
    columns = input.shape[-1]
    out = np.empty(input.shape, input.dtype)
    if out.size > 0:
        KERNEL[BLOCKS, THREADS](out, np.ascontiguousarray(input), input.size // columns, columns)
    return out
