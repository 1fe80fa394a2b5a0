"""What every program that the daemon starts does first; the others go on after it, in the same text."""
# ruff: noqa: E402

import sys

# `-c` puts the working folder first: a file of the project must not stand in for a module used here.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import contextlib
import faulthandler
import importlib


def limit_memory(limit: int) -> None:
    """Bound the address space, where the system can."""
    if limit == 0:
        return
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def prepare(memory_limit: int) -> None:
    """Put in place what all code of a project may rely on."""
    limit_memory(memory_limit)
    faulthandler.enable()
    # NumPy knows bfloat16 and fp8 by name once it is imported.
    with contextlib.suppress(Exception):
        importlib.import_module("ml_dtypes")
