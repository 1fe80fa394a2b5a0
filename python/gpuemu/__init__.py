"""gpuemu: catch silently wrong GPU kernels without a GPU.

    import gpuemu
    gpuemu.check("softmax", my_softmax)

Importing this package loads nothing heavy: what is used is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuemu import cuda, emulation, frameworks, iterators, rng, tolerances, triton
    from gpuemu.campaigns import CampaignReport, campaign
    from gpuemu.checking import check
    from gpuemu.client import Client, GpuemuClient
    from gpuemu.custom_op import CustomOp, op
    from gpuemu.errors import ClientError, ConnectionError, KernelError, KernelFindingsError, ValidationError
    from gpuemu.precision import Precision
    from gpuemu.reports import CheckReport, FuzzResults
    from gpuemu.results import ValidationResult
    from gpuemu.validation import validate

__version__ = "0.1.0"

_HOMES = {
    "CampaignReport": "gpuemu.campaigns",
    "CheckReport": "gpuemu.reports",
    "Client": "gpuemu.client",
    "ClientError": "gpuemu.errors",
    "ConnectionError": "gpuemu.errors",
    "CustomOp": "gpuemu.custom_op",
    "FuzzResults": "gpuemu.reports",
    "GpuemuClient": "gpuemu.client",
    "KernelError": "gpuemu.errors",
    "KernelFindingsError": "gpuemu.errors",
    "Precision": "gpuemu.precision",
    "ValidationError": "gpuemu.errors",
    "ValidationResult": "gpuemu.results",
    "campaign": "gpuemu.campaigns",
    "check": "gpuemu.checking",
    "op": "gpuemu.custom_op",
    "validate": "gpuemu.validation",
}
_MODULES = ("cuda", "emulation", "frameworks", "iterators", "rng", "tolerances", "triton")

__all__ = [
    "CampaignReport",
    "CheckReport",
    "Client",
    "ClientError",
    "ConnectionError",
    "CustomOp",
    "FuzzResults",
    "GpuemuClient",
    "KernelError",
    "KernelFindingsError",
    "Precision",
    "ValidationError",
    "ValidationResult",
    "campaign",
    "check",
    "cuda",
    "emulation",
    "frameworks",
    "iterators",
    "op",
    "rng",
    "tolerances",
    "triton",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _MODULES:
        return importlib.import_module(f"gpuemu.{name}")
    if name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'gpuemu' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return what there is."""
    return sorted({*globals(), *__all__})
