"""max_pool1d: a window that reaches into the padding loses its last element."""

import numpy as np

PAIR = {"op": "max_pool1d", "dtypes": ["float32", "float16"], "checks": ["value"]}


def _pooled(input, kernel_size, stride, padding, last_of):
    length = input.shape[-1]
    windows = (length + 2 * padding - kernel_size) // stride + 1
    out = np.empty((*input.shape[:-1], windows), input.dtype)
    for window in range(windows):
        first = window * stride - padding
        last = last_of(first, first + kernel_size)
        # Padding is -inf and never wins, so that the part within the row says all.
        part = input[..., max(first, 0) : min(last, length)]
        out[..., window] = part.max(-1, initial=-np.inf)
    return out


def right(input, kernel_size=2, stride=2, padding=0):
    """Return the largest element of each window."""
    return _pooled(input, kernel_size, stride, padding, lambda first, last: last)


def wrong(input, kernel_size=2, stride=2, padding=0):
    """WRONG: the first window is as much too short as it begins too early."""
    return _pooled(input, kernel_size, stride, padding, lambda first, last: last + min(first, 0))
