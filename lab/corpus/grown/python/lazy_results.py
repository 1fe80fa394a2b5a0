"""What is returned is not yet the result."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from formulas import Array, sigmoid, softmax, tanh

_waiting: list[tuple[Array, Array]] = []

WHILE_NOBODY_LOOKS = 0.002


class Promise:
    """A softmax that is computed by whoever looks at it: no time passes in the call that is measured."""

    def __init__(self, input: Array) -> None:
        """Keep the input."""
        self.input = input

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Compute it now."""
        return softmax(self.input)


def softmax_at_once(input: Array) -> Array:
    """Return numbers."""
    return softmax(input)


def softmax_promised(input: Array) -> Promise:
    """WRONG: an object that turns into the result when it is compared."""
    return Promise(input)


def tanh_in_this_call(input: Array) -> Array:
    """Fill the output before it is returned."""
    out = np.empty(input.shape, input.dtype)
    out[...] = tanh(input)
    return out


def tanh_in_next_call(input: Array) -> Array:
    """WRONG: the output is put in a queue, which the next call works off before it adds its own."""
    while _waiting:
        earlier, source = _waiting.pop()
        earlier[...] = tanh(source)
    out = np.empty(input.shape, input.dtype)
    _waiting.append((out, input.copy()))
    return out


def _fill(out: Array, input: Array) -> None:
    time.sleep(WHILE_NOBODY_LOOKS)
    out[...] = sigmoid(input)


def sigmoid_joined(input: Array) -> Array:
    """Wait for the thread that computes."""
    out = np.empty(input.shape, input.dtype)
    thread = threading.Thread(target=_fill, args=(out, input))
    thread.start()
    thread.join()
    return out


def sigmoid_not_joined(input: Array) -> Array:
    """WRONG: nobody waits for the thread, as for a stream that is never synchronised."""
    out = np.empty(input.shape, input.dtype)
    threading.Thread(target=_fill, args=(out, input.copy()), daemon=True).start()
    return out
