"""A project on its way to other machines: its files in one piece."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from gpuemu.errors import ClientError

MOST_BYTES = 256 << 20
"""What the files of a project may have together."""

_LEFT_OUT = (".git", ".hg", ".venv", "venv", "node_modules", "target", "__pycache__", ".mypy_cache", ".pytest_cache")
"""Folders that no kernel is made of."""


def pack(root: Path) -> bytes:
    """Return the files of a project. Folders of tools, and links that lead out of the project, are left out."""
    content = io.BytesIO()
    size = 0
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in _files(root):
            size += path.stat().st_size
            if size > MOST_BYTES:
                raise ClientError(
                    f"the project {root} has more than {MOST_BYTES >> 20} MB of files",
                    code="ConfigError",
                    hint="move what is no part of its kernels out of its folder",
                )
            archive.write(path, path.relative_to(root))
    return content.getvalue()


def unpack(content: bytes, folder: Path) -> None:
    """Write the files into a folder."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(folder)
        for entry in archive.infolist():
            # What can be run stays so: op scripts need not be Python.
            os.chmod(folder / entry.filename, (entry.external_attr >> 16) & 0o777 | 0o600)


def _files(root: Path) -> list[Path]:
    files = []
    inside = root.resolve()
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and path.resolve().is_relative_to(inside):
                files.append(path)
    return files
