"""Runs one script as `python script` does, with what every script may rely on in place.

Arguments: the script, the project's root, and the memory limit in bytes (0 for none).
"""

import builtins
import io
import os
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from start import prepare


def main() -> None:
    """Run the script as the main module."""
    script, root, memory = sys.argv[1:]
    prepare(int(memory))
    folder = os.path.dirname(script)
    sys.path[:0] = [folder] if folder == root else [folder, root]
    sys.argv = [script]
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    module = types.ModuleType("__main__")
    module.__file__ = script
    vars(module)["__builtins__"] = builtins
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
