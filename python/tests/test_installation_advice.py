"""Nobody is told to install gpuemu by its name: in the public package index it belongs to another project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READ_BY_USERS = [
    "README.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "pyproject.toml",
    "docs",
    "examples",
    "integrations",
]
SHOWN_TO_USERS = ["python/gpuemu", "vscode-gpuemu/src", "vscode-gpuemu/README.md", "lab/corpus/README.md"]
# It says why nobody is told.
RECORD = "docs/decisions/0036-packages-that-are-ours.md"

COMMAND = re.compile(r"\bpip3? install\b((?:(?! #)[^`\n])*)")
NAME = re.compile(r"gpuemu(\[[\w,]*\])?([=<>~!]=?\S*)?")


def named_in(text: str) -> list[str]:
    """The requirements of pip commands that name gpuemu."""
    words = (word.strip("\"'()") for arguments in COMMAND.findall(text) for word in arguments.split())
    return [word for word in words if NAME.fullmatch(word)]


def files() -> list[Path]:
    """Every file that a user reads, and the sources of what is printed."""
    sources = [*(ROOT / "crates").glob("*/src"), *(ROOT / name for name in READ_BY_USERS + SHOWN_TO_USERS)]
    found = [path for source in sources for path in (source.rglob("*") if source.is_dir() else [source])]
    kept = {".md", ".py", ".rs", ".toml", ".yml", ".sh", ".ts", ""}
    return [path for path in found if path.is_file() and path.suffix in kept and path != ROOT / RECORD]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pip install gpuemu", ["gpuemu"]),
        ("python -m pip install --upgrade 'gpuemu[torch,ray]'", ["gpuemu[torch,ray]"]),
        ('pip3 install "gpuemu==0.1.0" numpy', ["gpuemu==0.1.0"]),
        ("`pip install ray` and gpuemu", []),
        ("pip install '.[torch]'  # gpuemu", []),
        ("pip install wheels/gpuemu-0.1.0-py3-none-any.whl", []),
        ("pip install git+https://example.org/gpuemu", []),
        ("pip uninstall gpuemu", []),
    ],
)
def test_names_are_told_from_paths_and_addresses(text: str, named: list[str]) -> None:
    assert named_in(text) == named


def test_no_text_tells_anybody_to_install_it_by_its_name() -> None:
    read = {path: path.read_text(encoding="utf-8", errors="replace") for path in files()}
    assert len(read) > 300
    wrong = [f"{path.relative_to(ROOT)}: {name}" for path, text in read.items() for name in named_in(text)]
    assert wrong == []
