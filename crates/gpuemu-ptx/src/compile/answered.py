"""What the programs that compile have in common: a request comes from a file, and the answer goes to one.

The arguments name both files. Standard output is not used, so that what a kernel's module prints does no
harm. This file and the program are started as one, with this file in front.
"""
# ruff: noqa: E402

import sys

# `-c` puts the working folder first: a file of the project must not stand in for a module used here.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import contextlib
import json
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

MOST_TRACEBACK = 4000


class RequestError(Exception):
    """The request cannot be fulfilled, for a reason that its author understands."""


def refuse(message: str) -> NoReturn:
    """Give up."""
    raise RequestError(message)


def own_traceback(error: BaseException) -> str:
    """Tell the end of a traceback, without the frames of this program."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == "<string>":
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
    return text if len(text) <= MOST_TRACEBACK else "..." + text[-MOST_TRACEBACK:]


def limit_memory(limit: int) -> None:
    """Bound the address space, where the system can."""
    if limit == 0:
        return
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def answer(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read the request, do what it asks, and write what came of it."""
    request_file, answer_file = sys.argv[1:3]
    with open(request_file, encoding="utf-8") as file:
        request = json.load(file)
    limit_memory(request["memory_bytes"])
    try:
        result = work(request)
    except RequestError as error:
        result = {"error": str(error)}
    except BaseException as error:
        # A module that calls `sys.exit` is no better than one that raises.
        result = {"error": own_traceback(error)}
    with open(answer_file, "w", encoding="utf-8") as file:
        json.dump(result, file)
