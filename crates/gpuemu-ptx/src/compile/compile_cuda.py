"""Compiles one CUDA C++ file to PTX with NVRTC, without a GPU and without nvcc.

The answer has the PTX, or an error in words, or says that there is no NVRTC. `answered.py` is started
in front of this file.
"""

import contextlib
import ctypes
import ctypes.util
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from answered import answer, refuse

MOST_LOG = 8000


def toolkits(cuda_home: str | None) -> list[Path]:
    """The folders that may have a library and headers: a toolkit, and what the packages of CUDA install."""
    folders = [Path(cuda_home)] if cuda_home else []
    for entry in sys.path:
        # `nvidia/cu13` since CUDA 13, `nvidia/cuda_nvrtc` and others before.
        folders.extend(sorted(Path(entry, "nvidia").glob("*"), reverse=True))
    return [folder for folder in folders if folder.is_dir()]


def libraries(folders: list[Path]) -> list[str]:
    """Libraries to try, in order."""
    found: list[str] = []
    for folder in folders:
        for name in ("lib", "lib64"):
            # Not the helper libraries beside it.
            files = [file for file in folder.glob(f"{name}/libnvrtc.so*") if ".alt." not in file.name]
            found.extend(str(file) for file in sorted(files, reverse=True))
    on_path = ctypes.util.find_library("nvrtc")
    return [*found, *([on_path] if on_path else []), "libnvrtc.so"]


def load(folders: list[Path]) -> ctypes.CDLL | None:
    """The first library that can be loaded."""
    for library in libraries(folders):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(library)
    return None


def include_options(folders: list[Path]) -> list[str]:
    """Where the headers of CUDA are."""
    places = [folder / part for folder in folders for part in ("include", "include/cccl")]
    return [f"-I{place}" for place in places if place.is_dir()]


class Compiler:
    """NVRTC, with the calls that are needed."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Ask the library for its version."""
        self.library = library
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.check(library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = f"{major.value}.{minor.value}"

    def check(self, result: int) -> None:
        """Turn a result that is not zero into an exception."""
        if result != 0:
            refuse(f"NVRTC failed: {self.library.nvrtcGetErrorString(result).decode()}")

    def text(self, program: ctypes.c_void_p, size: Any, get: Any) -> str:
        """A text that the library has for a program."""
        length = ctypes.c_size_t()
        self.check(size(program, ctypes.byref(length)))
        buffer = ctypes.create_string_buffer(length.value + 1)
        self.check(get(program, buffer))
        return buffer.value.decode(errors="replace")

    def compile(self, source: bytes, name: str, options: list[str]) -> dict[str, Any]:
        """Compile a text to PTX."""
        library, program = self.library, ctypes.c_void_p()
        self.check(library.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None))
        arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        result = library.nvrtcCompileProgram(program, len(options), arguments)
        log = self.text(program, library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog).strip()
        if result != 0:
            reason = library.nvrtcGetErrorString(result).decode()
            refuse(f"{log[:MOST_LOG]}\n{reason}".strip())
        ptx = self.text(program, library.nvrtcGetPTXSize, library.nvrtcGetPTX)
        return {"ptx": ptx, "producer": f"NVRTC {self.version}"}


def compile_source(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked."""
    folders = toolkits(request["cuda_home"])
    library = load(folders)
    if library is None:
        return {"no_compiler": f"{sys.executable} finds no library libnvrtc"}
    path = os.path.join(request["root"], request["file"])
    source = Path(path).read_bytes()
    if b"\0" in source:
        refuse(f"{request['file']} is not text: it has a zero byte")
    options = [
        f"--gpu-architecture={re.sub('^sm_', 'compute_', request['target'])}",
        "--generate-line-info",
        *request["options"],
        f"-I{os.path.dirname(path)}",
        *include_options(folders),
    ]
    return Compiler(library).compile(source, request["file"], options)


answer(compile_source)
