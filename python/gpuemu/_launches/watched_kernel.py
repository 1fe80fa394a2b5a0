"""Whether a function ran the kernel that it is said to run, or something else computed the result.

The package and the worker share this file, as they share `_runs/watched_memory.py`: it imports nothing of
either.
"""

import sys
from typing import Any


class WatchedKernel:
    """What runs the kernel, in the place of what it watches: every call that comes to its end is counted."""

    def __init__(self, original: Any) -> None:
        """Count from zero."""
        self.original = original
        # By which the signature of the original is found.
        self.__wrapped__ = original
        self.forget()

    def forget(self) -> None:
        """Start anew, as if there had been no call."""
        self.ended = 0
        self.error: str | None = None

    def put_in_place(self, function: Any = None) -> bool:
        """Stand in for the original in every loaded module and in a closure; whether any of them has it."""
        return _replace(self.original, self, function)

    def take_away(self, function: Any = None) -> None:
        """Put the original back."""
        _replace(self, self.original, function)

    def counted(self, call: Any, arguments: Any, keywords: Any) -> Any:
        """Make a call."""
        try:
            result = call(*arguments, **keywords)
        except BaseException as error:
            self.error = f"{type(error).__name__}: {error}"
            raise
        self.ended += 1
        return result

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it as a function."""
        return self.counted(self.original, arguments, keywords)

    def __getitem__(self, grid: Any) -> Any:
        """Return its launch over a grid, as kernels of Triton and Numba are launched."""
        launch = self.original[grid]
        return lambda *arguments, **keywords: self.counted(launch, arguments, keywords)

    def __getattr__(self, name: str) -> Any:
        """Be the original in everything else."""
        return getattr(self.original, name)

    def seen(self, output_bytes: list[int]) -> list[dict[str, Any]]:
        """Return whether the last call did without the kernel. For no elements there is nothing to run."""
        if self.ended or not any(output_bytes):
            return []
        return [{"check": "not_launched", "error": self.error}]


def _replace(old: Any, new: Any, function: Any) -> bool:
    """Put one object in the place of another, under every name; whether there was one."""
    found = False
    for module in list(sys.modules.values()):
        # Modules that are no modules have been seen among them.
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict):
            own = [name for name, value in list(names.items()) if value is old]
            names.update(dict.fromkeys(own, new))
            found = found or bool(own)
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held = cell.cell_contents is old
        except ValueError:  # The cell is empty: its name has no value yet.
            continue
        if held:
            cell.cell_contents = new
            found = True
    return found
