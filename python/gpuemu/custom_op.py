"""Ops that exist only in a Python program: a signature and a reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpuemu import _native
from gpuemu._arrays.dtypes import dtype_name
from gpuemu._runs.callable import Bridge
from gpuemu._runs.settings import Settings, Tolerance
from gpuemu._runs.signature import accepted
from gpuemu.errors import ClientError
from gpuemu.frameworks.registry import adapter


@dataclass(frozen=True)
class CustomOp:
    """An op with a reference in Python. `gpuemu.op` makes one."""

    name: str
    signature: str
    reference: Callable[..., Any]
    tolerance: Tolerance | None = None
    dtypes: Sequence[str] = ()
    gradient: Callable[..., Any] | None = None

    def open(self, options: str) -> _native.ReadyOp:
        """Make it ready to be judged."""
        # The reference is given float64 arrays of NumPy: every dtype is exact in them.
        allowed = ("aliasing", "output_overwritten")
        bridge = Bridge(self.reference, adapter("numpy"), allowed=allowed, title="it")
        takes = json.dumps(accepted(self.reference))
        dtypes = list(self.dtypes)
        return _native.ReadyOp.custom(self.name, self.signature, bridge, takes, dtypes, self._drawn(options))

    def _drawn(self, options: str) -> str:
        """Return options whose cases are of the op's dtypes, where it has some."""
        if not self.dtypes:
            return options
        given = json.loads(options)
        settings = given.setdefault("settings", {})
        for dtype in settings.setdefault("dtypes", list(self.dtypes)):
            if dtype not in self.dtypes:
                message = f"op '{self.name}' cannot be judged in {dtype}"
                hint = f"its dtypes are {', '.join(self.dtypes)}"
                raise ClientError(message, code="InvalidRequest", hint=hint)
        return json.dumps(given)


def op(
    name: str,
    signature: str,
    reference: Callable[..., Any],
    *,
    tolerance: Tolerance | None = None,
    dtypes: Sequence[Any] = (),
    gradient: Callable[..., Any] | None = None,
) -> CustomOp:
    """Define an op by its signature, such as `"a[M,K] b[K,N] -> out[M,N]"`, and a reference.

    `reference` is called with float64 NumPy arrays by the names of the signature (or in their order) and
    returns an array for each output. It gives values without a bound, so what is allowed is a tolerance:
    `(atol, rtol)`, a dict of them by dtype, or the documented default of each dtype. `gradient` takes the
    inputs and `grad_<output>` of each output and returns the gradients of the inputs; without it, gradients
    are taken from finite differences of the reference.
    """
    if not callable(reference):
        raise TypeError(f"the reference of op '{name}' is a {type(reference).__name__}; give a function")
    if isinstance(dtypes, str):
        raise TypeError(f"dtypes of op '{name}' is the text {dtypes!r}; give a list, such as [{dtypes!r}]")
    made = CustomOp(
        name, signature, reference, tolerance, tuple(dtype_name(dtype) for dtype in dtypes), gradient
    )
    # A signature or a tolerance that cannot be read is found here, not at the first check.
    made.open(Settings(tolerance=tolerance).options({"root": "."}, None))
    return made
