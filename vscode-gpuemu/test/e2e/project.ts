// The workspace of the tests: two ops, one of them wrong in float16 only.

import { mkdirSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';

export const CONFIGURATION = `# The project of the end-to-end test.
[project]
name = "kernels"
framework = "numpy"

[validation]
dtypes = ["float32", "float16"]
seed = 1

[[ops]]
name = "softmax" # tile by tile
module = "kernels.softmax"

[[ops]]
name = "relu"
module = "kernels.activations:relu"

[ci]
fuzz_iterations = 60

[ci.quick]
dtypes = ["float32", "float16"]
fuzz_iterations = 20
`;

const SOFTMAX = `"""Softmax along the last dim."""

import numpy as np

TILE = 64


def end_of_tiles(input):
    """Return where the last tile ends."""
    return input.shape[-1] if input.dtype == np.float32 else max(TILE, input.shape[-1] // TILE * TILE)


def softmax(input):
    """Return exp(x - max) / sum(exp(x - max)), accumulated in float32 or wider."""
    dtype = np.promote_types(input.dtype, np.float32)
    with np.errstate(all="ignore"):
        largest = input.max(-1, keepdims=True, initial=-np.inf).astype(dtype)
        exponentials = np.exp(input.astype(dtype) - np.where(largest == -np.inf, 0, largest))
        total = sum(
            exponentials[..., start : min(start + TILE, end_of_tiles(input))].sum(-1, keepdims=True)
            for start in range(0, end_of_tiles(input), TILE)
        )
        return (exponentials / total).astype(input.dtype)
`;

/** Where the op is named in the configuration. */
export const OP_LINE = CONFIGURATION.split('\n').indexOf('name = "softmax" # tile by tile') + 1;

/** Where the op is defined. */
export const DEFINITION_LINE = SOFTMAX.split('\n').indexOf('def softmax(input):') + 1;

/** The line that is wrong, and what it has to be. */
export const WRONG_LINE = SOFTMAX.split('\n').findIndex((line) => line.includes('// TILE')) + 1;
export const RIGHT_TEXT = '    return input.shape[-1]';

const ACTIVATIONS = `"""Activations."""

import numpy as np


def relu(input):
    """Return x where it is above 0, else 0."""
    return np.maximum(input, 0)
`;

const KERNEL = `.version 8.0
.target sm_80
.address_size 64

.visible .entry fill(.param .u64 out)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
`;

/** Where the kernel stores, one element a thread. */
export const STORE_LINE = KERNEL.split('\n').findIndex((line) => line.includes('st.global')) + 1;

export function writeProject(folder: string): void {
  const write = (name: string, text: string): void => {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  write('gpuemu.toml', CONFIGURATION);
  write('kernels/__init__.py', '');
  write('kernels/softmax.py', SOFTMAX);
  write('kernels/activations.py', ACTIVATIONS);
  write('fill.ptx', KERNEL);
}
