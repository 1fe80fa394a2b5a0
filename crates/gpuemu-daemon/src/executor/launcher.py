"""Runs one script as `python script` does, with what every script may rely on in place.

Arguments: the script, the project's root, and the memory limit in bytes (0 for none).
"""
# ruff: noqa: E402

import sys

# `-c` puts the working folder first: a file of the project must not stand in for a module used here.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import builtins
import contextlib
import faulthandler
import importlib
import os
import types


def limit_memory(limit: int) -> None:
    """Bound the address space, where the system can."""
    if limit == 0:
        return
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def main() -> None:
    """Run the script as the main module."""
    script, root, memory = sys.argv[1:]
    limit_memory(int(memory))
    faulthandler.enable()
    # NumPy knows bfloat16 and fp8 by name once it is imported.
    with contextlib.suppress(Exception):
        importlib.import_module("ml_dtypes")
    folder = os.path.dirname(script)
    sys.path[:0] = [folder] if folder == root else [folder, root]
    sys.argv = [script]
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8")
    module = types.ModuleType("__main__")
    module.__file__ = script
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    try:
        with open(script, "rb") as file:
            source = file.read()
        exec(compile(source, script, "exec", dont_inherit=True), module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        # The first frame is this function.
        own = error.__traceback__
        rest = own.tb_next if own else None
        sys.excepthook(type(error), error.with_traceback(rest), rest)
        sys.exit(1)


main()
