"""Arrays of NumPy, PyTorch, JAX and TensorFlow, and how gpuemu hands them over and reads them.

Importing this package loads none of these frameworks but NumPy.
"""

from gpuemu.frameworks.base import BaseAdapter, NotAnArrayError, NotConnectedError, TensorData
from gpuemu.frameworks.current import current_adapter
from gpuemu.frameworks.registry import FRAMEWORKS, adapter, adapter_for
from gpuemu.frameworks.validation import Validation, validate_jax, validate_pytorch, validate_tensorflow

__all__ = [
    "FRAMEWORKS",
    "BaseAdapter",
    "NotAnArrayError",
    "NotConnectedError",
    "TensorData",
    "Validation",
    "adapter",
    "adapter_for",
    "current_adapter",
    "validate_jax",
    "validate_pytorch",
    "validate_tensorflow",
]
