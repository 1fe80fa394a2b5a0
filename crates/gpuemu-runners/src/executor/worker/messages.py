"""Requests and answers, and the connection that they travel on: what were standard input and output.

Each is a frame: a magic, the length of a JSON header, the header, and the blobs whose lengths it lists.
"""

import importlib
import io
import json
import os
import struct
import traceback
from typing import Any

MAGIC = b"gpe1"
# Whoever changed the attributes of these modules changed them for themselves alone.
ENCODE = json.JSONEncoder().encode
DECODE = json.JSONDecoder().decode
MOST_TRACEBACK = 1 << 16

Blobs = list[Any]
Answer = tuple[dict[str, Any], Blobs]


def clean(text: str) -> str:
    """Return the end of a text, without what cannot be sent."""
    return text[-MOST_TRACEBACK:].encode("utf-8", "replace").decode("utf-8")


def traceback_text(error: BaseException) -> str:
    """Format an exception without the frames of this file and of the import system."""
    frames = error.__traceback__
    own = ("<string>", "<frozen importlib", importlib.__file__)
    while frames and frames.tb_frame.f_code.co_filename.startswith(own):
        frames = frames.tb_next
    return clean("".join(traceback.format_exception(type(error), error, frames)))


class Channel:
    """The two directions of the connection, out of reach of whoever prints or reads."""

    def __init__(self) -> None:
        """Take over standard input and output."""
        incoming, outgoing = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self.requests = io.BufferedReader(io.FileIO(incoming, "rb"), 1 << 16)
        self.answers = io.BufferedWriter(io.FileIO(outgoing, "wb"), 1 << 16)

        held = [incoming, outgoing]

        def forget() -> None:
            while held:
                os.close(held.pop())

        # A child that lives on must not keep the connection open.
        os.register_at_fork(after_in_child=forget)

    def receive(self) -> tuple[dict[str, Any], Blobs] | None:
        """Read one request, or nothing at the end."""
        start = self.requests.read(8)
        if len(start) < 8:
            return None
        magic, length = struct.unpack("<4sI", start)
        if magic != MAGIC:
            return None
        header = DECODE(self.requests.read(length).decode("utf-8"))
        blobs = []
        for size in header["blobs"]:
            blob = bytearray(size)
            if self.requests.readinto(blob) != size:
                return None
            blobs.append(blob)
        return header, blobs

    def send(self, header: dict[str, Any], blobs: Blobs) -> None:
        """Write one answer."""
        header["blobs"] = [len(blob) for blob in blobs]
        text = ENCODE(header).encode("ascii")
        self.answers.write(struct.pack("<4sI", MAGIC, len(text)) + text)
        for blob in blobs:
            self.answers.write(blob)
        self.answers.flush()
