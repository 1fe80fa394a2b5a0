"""Scripts that read a document and print one."""

import builtins
import errno
import io
import os
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from messages import Answer, traceback_text


class Capture(io.BytesIO):
    """What a script prints, up to a limit."""

    def __init__(self, limit: int) -> None:
        """Start with nothing."""
        super().__init__()
        self.left = limit
        self.exceeded = False

    def write(self, data: Any) -> int:
        """Keep what is written."""
        written = super().write(data)
        self.left -= written
        if self.left < 0:
            self.exceeded = True
            self.truncate(0)
            raise OSError(errno.EFBIG, "more was printed to stdout than is allowed")
        return written

    def close(self) -> None:
        """Keep the bytes: what was printed before stdout was closed counts."""


class Script:
    """A script that is run again and again, each time as a main module of its own."""

    def __init__(self, path: str, root: str, limit: int) -> None:
        """Compile it."""
        with open(path, "rb") as file:
            source = file.read()
        self.code = compile(source, path, "exec", dont_inherit=True)
        self.path, self.root, self.limit = path, root, limit
        self.main = sys.modules["__main__"]
        self.streams = sys.stdin, sys.stdout, sys.stderr
        self.search = list(sys.path)
        self.environment = os.environ.copy()

    def run(self, document: bytearray) -> Answer:
        """Run it with a request document; what it prints is the answer."""
        os.chdir(self.root)
        module = types.ModuleType("__main__")
        module.__file__ = self.path
        vars(module)["__builtins__"] = builtins
        sys.modules["__main__"] = module
        sys.argv = [self.path]
        capture = Capture(self.limit)
        # As in a process started with `-u`: text is not held back.
        sys.stdout = io.TextIOWrapper(capture, encoding="utf-8", write_through=True)
        sys.stdin = io.TextIOWrapper(io.BytesIO(document), encoding="utf-8")
        vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout)
        answer: dict[str, Any] = {"is": "printed"}
        try:
            exec(self.code, module.__dict__)
        except SystemExit as end:
            if status := self.status(end.code):
                answer = {"is": "exited", "status": status}
        except BaseException as error:
            answer = {"is": "raised", "text": traceback_text(error)}
        finally:
            self.restore()
            # The functions of the module and the module hold each other, and the arrays of the run.
            module.__dict__.clear()
        if capture.exceeded:
            return {"is": "too_large"}, []
        return answer, [capture.getbuffer()] if answer["is"] == "printed" else []

    def status(self, code: object) -> int:
        """Return the exit status that Python gives for an argument of `sys.exit`."""
        if code is None:
            return 0
        if isinstance(code, int):
            return code & 0xFF
        print(code, file=self.streams[2], flush=True)
        return 1

    def restore(self) -> None:
        """Undo what a run may have changed for the next one."""
        sys.modules["__main__"] = self.main
        sys.stdin, sys.stdout, sys.stderr = self.streams
        vars(sys).update(zip(("__stdin__", "__stdout__", "__stderr__"), self.streams, strict=True))
        sys.path[:] = self.search
        if os.environ != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
