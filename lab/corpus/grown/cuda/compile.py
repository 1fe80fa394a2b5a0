"""Compiles the kernels of this folder for sm_80 into `ptx`, one file for each kernel.

python lab/corpus/grown/cuda/compile.py           # write lab/corpus/grown/cuda/ptx
python lab/corpus/grown/cuda/compile.py --check   # write nothing; exit 1 and name the files that would change

Needs NVRTC (`pip install nvidia-cuda-nvrtc`) with the headers of CUDA, and no GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

SOURCES = Path(__file__).resolve().parent
ROOT = SOURCES.parents[3]
sys.path.insert(0, str(ROOT / "lab/corpus/triton"))

from compiled_text import kept  # noqa: E402

KEPT = SOURCES / "ptx"
PROGRAM = ROOT / "crates/gpuemu-ptx/src/compile"
"""Where gpuemu's own program lies that compiles with NVRTC, and what is started in front of it."""

TARGET = "sm_80"
ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
VARIABLE = re.compile(r"\.(?:extern|shared|global|const)\b.*?(\w+)(?:\[\d*\])?(?: = .*)?;")


def compile_source(path: Path) -> tuple[str, str]:
    """Return the PTX of a source, as NVRTC writes it, and what made it."""
    program = "".join(
        (PROGRAM / name).read_text(encoding="utf-8") for name in ("answered.py", "compile_cuda.py")
    )
    question: dict[str, object] = {
        "root": str(SOURCES),
        "file": path.name,
        "target": TARGET,
        "options": [],
        "cuda_home": None,
        "memory_bytes": 0,
    }
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "question.json"), Path(folder, "answer.json")
        asked.write_text(json.dumps(question), encoding="utf-8")
        subprocess.run([sys.executable, "-B", "-c", program, str(asked), str(answered)], check=True)
        answer: dict[str, str] = json.loads(answered.read_text(encoding="utf-8"))
    if "ptx" not in answer:
        sys.exit(f"{path.name} is not compiled: {answer.get('error') or answer.get('no_compiler')}")
    return answer["ptx"], answer["producer"]


def entries(ptx: str) -> dict[str, str]:
    """Return the PTX of each kernel alone, by its name: a file of its own is what a linter can judge."""
    common: list[str] = []
    kernels: dict[str, list[str]] = {}
    inside: list[str] | None = None
    for line in ptx.splitlines():
        if found := ENTRY.match(line):
            inside = kernels.setdefault(found[1], [])
        if inside is None:
            common.append(line)
            continue
        inside.append(line)
        if line == "}":
            inside = None
    return {name: "\n".join([*_needed(common, lines), *lines]) + "\n" for name, lines in kernels.items()}


def _needed(common: list[str], kernel: list[str]) -> list[str]:
    """Return what stands outside of kernels, less the variables that this one does not name."""
    text = "\n".join(kernel)
    variables = ((line, VARIABLE.match(line)) for line in common)
    return [line for line, found in variables if found is None or re.search(rf"\b{found[1]}\b", text)]


def compile_all() -> tuple[dict[str, str], set[str]]:
    """Return every file of `ptx` by its name, and what made them."""
    files: dict[str, str] = {}
    producers: set[str] = set()
    for path in sorted(SOURCES.glob("*.cu")):
        ptx, producer = compile_source(path)
        producers.add(producer)
        for name, text in entries(ptx).items():
            file = f"{name}.ptx"
            if file in files:
                sys.exit(f"{path.name} has a second kernel {name}; rename it")
            files[file] = kept(text, path.relative_to(ROOT).as_posix())
    return files, producers


def differences(files: dict[str, str]) -> list[str]:
    """Return, in words, how the folder differs from what belongs there."""
    there = {path.name: path.read_text(encoding="utf-8") for path in KEPT.glob("*")}
    found = [f"{name} is missing" for name in files.keys() - there.keys()]
    found += [f"{name} comes of no kernel" for name in there.keys() - files.keys()]
    found += [
        f"{name} is not what its source gives"
        for name, text in there.items()
        if files.get(name, text) != text
    ]
    return sorted(found)


def write(files: dict[str, str]) -> None:
    """Make the folder what it should be."""
    KEPT.mkdir(exist_ok=True)
    for path in KEPT.iterdir():
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (KEPT / name).write_text(text, encoding="utf-8", newline="\n")


def main() -> int:
    """Write the folder, or check it."""
    parser = argparse.ArgumentParser(description="Compile the kernels of lab/corpus/grown/cuda.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if the files would change"
    )
    check = parser.parse_args().check
    files, producers = compile_all()
    found = differences(files)
    if not check:
        write(files)
    for line in found:
        print(f"lab/corpus/grown/cuda/ptx/{line}")
    size = sum(len(text.encode()) for text in files.values())
    verdict = f"{len(found)} differ" if check else f"{len(found)} changed"
    print(f"{len(files)} files, {size:,} bytes, by {', '.join(sorted(producers))}, {verdict}")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
