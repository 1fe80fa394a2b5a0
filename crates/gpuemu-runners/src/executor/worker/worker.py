"""Answers requests, one after the other, until the other side is gone.

Arguments: the project's root, the memory limit in bytes (0 for none), and the most bytes a script may print.
The daemon starts `start.py` and the files of this folder as one program: what it imports from a project must
not be mistaken for a part of it.
"""

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from arrays import LoadError
    from callables import Callable
    from loaded_files import LoadedFiles
    from messages import Answer, Blobs, Channel, clean, traceback_text
    from scripts import Script
    from start import prepare


class Worker:
    """What was loaded, and what can be asked of it."""

    def __init__(self, root: str, limit: int) -> None:
        """Start with nothing loaded."""
        self.root, self.limit = root, limit
        self.files = LoadedFiles({root, os.path.realpath(root)})
        self.script: Script | None = None
        self.callable: Callable | None = None

    def answer(self, request: dict[str, Any], blobs: Blobs) -> Answer:
        """Do what is asked."""
        since = time.time_ns()
        answer: Answer
        if request["do"] == "run_script" and self.script:
            answer = self.script.run(blobs[0])
        elif request["do"] == "run_callable" and self.callable:
            answer = self.callable.run(request, blobs)
        elif request["do"] == "load_script":
            answer = self.load_script(os.fsdecode(bytes(blobs[0])), since)
        elif request["do"] == "load_callable":
            answer = self.load_callable(request)
        elif request["do"] == "stale":
            if self.callable:
                # Whoever asks is about to make calls that have nothing to do with the ones before.
                self.callable.memory.forget()
            answer = {"is": "stale", "changed": self.files.changed()}, []
        elif request["do"] == "mark":
            os.write(2, request["mark"].encode("ascii"))
            answer = {"is": "marked"}, []
        else:
            answer = {"is": "raised", "text": f"the worker cannot do {request['do']!r}"}, []
        self.files.add_modules(since)
        return answer

    def load_script(self, path: str, since: int) -> Answer:
        """Make a script ready to run."""
        folder = os.path.dirname(path)
        sys.path[:0] = [folder] if folder == self.root else [folder, self.root]
        self.files = LoadedFiles({self.root, os.path.realpath(self.root), folder, os.path.realpath(folder)})
        self.files.add(path, since)
        try:
            self.script = Script(path, self.root, self.limit)
        except BaseException as error:
            return {"is": "raised", "text": traceback_text(error)}, []
        return {"is": "loaded"}, []

    def load_callable(self, request: dict[str, Any]) -> Answer:
        """Make a function ready to be called."""
        sys.path.insert(0, self.root)
        try:
            self.callable = Callable(
                request["target"], request["op"], request["framework"], request["launches"]
            )
        except LoadError as error:
            return {"is": "not_loaded", "text": clean(str(error))}, []
        return self.callable.accepted(), []


def end() -> NoReturn:
    """Leave, with all processes that were started here."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


def main() -> None:
    """Answer until nobody asks."""
    root, memory, limit = sys.argv[1:]
    del sys.argv[1:]
    channel = Channel()
    prepare(int(memory))
    worker, process = Worker(root, int(limit)), os.getpid()
    while True:
        received = channel.receive()
        if received is None:
            end()
        try:
            header, blobs = worker.answer(*received)
        except BaseException as error:
            header, blobs = {"is": "raised", "text": traceback_text(error)}, []
        del received
        if os.getpid() != process:
            # A child that a script forked came back from it: it is not the worker.
            if header["is"] == "raised":
                os.write(2, header["text"].encode("utf-8"))
            os._exit(header.get("status", 1 if header["is"] == "raised" else 0))
        channel.send(header, blobs)


main()
