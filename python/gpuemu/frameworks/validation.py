"""Blocks of code in which kernels of one framework are validated, and which fail at their end."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from gpuemu.frameworks.base import BaseAdapter
from gpuemu.frameworks.current import use
from gpuemu.frameworks.registry import adapter, adapter_for


def validate_pytorch(device: Any = None, raise_on_exit: bool = True) -> Validation:
    """Return a block in which PyTorch is the framework, its tensors on a device such as `cuda`."""
    return Validation(adapter("pytorch", device), raise_on_exit)


def validate_jax(device: Any = None, raise_on_exit: bool = True) -> Validation:
    """Return a block in which JAX is the framework, its arrays on a device such as `gpu`."""
    return Validation(adapter("jax", device), raise_on_exit)


def validate_tensorflow(device: Any = None, raise_on_exit: bool = True) -> Validation:
    """Return a block in which TensorFlow is the framework, its tensors on a device such as `GPU:0`."""
    return Validation(adapter("tensorflow", device), raise_on_exit)


class Validation:
    """A block in which one framework is used, and what was found in it.

    At its end it raises `gpuemu.errors.ValidationError` with every failure. An exception of the block itself
    goes through: what failed before it is in `results`.
    """

    def __init__(self, adapter: BaseAdapter, raise_on_exit: bool = True) -> None:
        """Prepare a block; `raise_on_exit=False` leaves it to the caller to look at `results`."""
        self.adapter = adapter
        self.raise_on_exit = raise_on_exit
        self.results: list[Any] = []
        """Every report of `check` and every result of `run`, in order."""
        self._failures: list[str] = []
        self._block: ExitStack | None = None

    def __enter__(self) -> Validation:
        """Use the framework from here on."""
        if self._block is not None:
            raise RuntimeError("this validation is already in use; make another one for a block within it")
        self.results, self._failures = [], []
        self._block = ExitStack()
        self._block.enter_context(use(self.adapter))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise what failed, unless the block raised something itself."""
        block, self._block = self._block, None
        if block is not None:
            block.close()
        if error is None and self.raise_on_exit and self._failures:
            done = max(len(self.results), len(self._failures))
            count = f"{len(self._failures)} of {done} validations failed"
            raise _gpuemu("gpuemu.errors").ValidationError("\n".join([f"{count}:", *self._failures]))

    def check(self, op: Any, function: Callable[..., Any], **options: Any) -> Any:
        """Run `gpuemu.check` and keep its report; a failure is raised at the end of the block."""
        self._check_in_use()
        report = _gpuemu("gpuemu").check(op, function, raises=False, **options)
        return self._record(report)

    def run(self, op: Any, function: Callable[..., Any], *inputs: Any, **parameters: Any) -> Any:
        """Call a function with arrays of your own, validate what it returns, and return that unchanged.

        A failure is raised at the end of the block.
        """
        self._check_in_use()
        # A function that overwrites its inputs is still judged by those that it was given.
        before = [_snapshot(value) for value in inputs]
        named = {name: _snapshot(value) for name, value in parameters.items()}
        try:
            output = function(*inputs, **parameters)
        except Exception as error:
            # It fails the block also where the caller goes on.
            self._failures.append(f"{getattr(op, 'name', op)}: raised {type(error).__name__}: {error}")
            raise
        self._record(_gpuemu("gpuemu").validate(op, before, output, kwargs=named, raises=False))
        return output

    def _check_in_use(self) -> None:
        if self._block is None:
            raise RuntimeError("a failure found here would be raised by nobody: use `with … as validation:`")

    def _record(self, result: Any) -> Any:
        self.results.append(result)
        if not result.passed:
            self._failures.append(str(result))
        return result


def _snapshot(value: Any) -> Any:
    try:
        return adapter_for(value).snapshot(value)
    except TypeError:
        return value


def _gpuemu(module: str) -> Any:
    # Imported when it is needed: gpuemu itself imports the frameworks.
    return importlib.import_module(module)
