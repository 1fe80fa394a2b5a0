"""Whether a function ran the kernel that it is said to run, or something else computed the result.

Nothing is imported from the other files of the worker, which are one program with this one.
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

    def put_in_place(self) -> None:
        """Stand in for the original under every name that a loaded module has for it."""
        for module in list(sys.modules.values()):
            # Modules that are no modules have been seen among them.
            names = getattr(module, "__dict__", None)
            if isinstance(names, dict):
                own = [name for name, value in list(names.items()) if value is self.original]
                names.update(dict.fromkeys(own, self))

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
