"""Compiles the kernels of this folder for sm_80 into `corpus/ptx`, and writes their launch table.

python corpus/triton/compile.py           # write corpus/ptx
python corpus/triton/compile.py --check   # write nothing; exit 1 and name the files that would change

Needs Triton, and no GPU.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True

from compiled_text import kept  # noqa: E402
from launches import DTYPES, KERNELS, Kernel, Variant  # noqa: E402

SOURCES = Path(__file__).resolve().parent
KEPT = SOURCES.parent / "ptx"
SOURCE_NAME = "corpus/triton/{}"
"""How PTX and the launch table name a source: from the root of the repository."""

TARGET = 80
TABLE = "kernels.toml"


def compile_variant(kernel: Kernel, variant: Variant) -> tuple[str, int]:
    """Return the PTX of a variant, as it is kept, and its dynamic shared memory."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = _load(kernel)
    types = iter(kernel.types)
    signature = {
        name: "constexpr"
        if name in variant.constants
        else next(types).replace("*", "*" + DTYPES[variant.dtype])
        for name in function.arg_names
    }
    # Without fusion, as Triton will do by default. With it, the lanes that hold copies of one sum fuse other
    # products into it each and no longer agree in the last bit: one copy ends up in a numerator, and another
    # one in its denominator.
    options = {"num_warps": variant.warps, "enable_fp_fusion": False}
    source = ASTSource(function, signature, variant.constants, {})
    compiled = triton.compile(source, target=GPUTarget("cuda", TARGET, 32), options=options)
    return kept(compiled.asm["ptx"], SOURCE_NAME.format(kernel.file)), int(compiled.metadata.shared)


_modules: dict[str, dict[str, Any]] = {}


def _load(kernel: Kernel) -> Any:
    if kernel.file not in _modules:
        _modules[kernel.file] = runpy.run_path(str(SOURCES / kernel.file))
    return _modules[kernel.file][kernel.name]


def compile_all() -> dict[str, str]:
    """Return every file of `corpus/ptx` by its name."""
    work = [(kernel, variant) for kernel in KERNELS for variant in kernel.variants]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        with ProcessPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
            done = list(pool.map(compile_variant, *zip(*work, strict=True), chunksize=4))
    files: dict[str, str] = {}
    shared: dict[str, int] = {}
    for (kernel, variant), (ptx, shared_bytes) in zip(work, done, strict=True):
        name = file_name(kernel, variant)
        files[name], shared[name] = ptx, shared_bytes
    files[TABLE] = table(shared)
    return files


def file_name(kernel: Kernel, variant: Variant) -> str:
    """Return the file that a variant's PTX is in."""
    return f"{kernel.name}_{variant.label}.ptx"


def table(shared: dict[str, int]) -> str:
    """Return the launch table."""
    import triton

    lines = [
        f"# The published Triton kernels, compiled for sm_{TARGET} with Triton {triton.__version__}.",
        "# Written by corpus/triton/compile.py: do not edit.",
        "# Kernels that take no stride read contiguous tensors only. The two null pointers are for scratch",
        "# memory, which Triton adds to every kernel.",
    ]
    for kernel in KERNELS:
        arguments = [*kernel.arguments, "null", "null"]
        lines += [
            "",
            "[[kernels]]",
            f'name = "{kernel.name}"',
            f'source = "{SOURCE_NAME.format(kernel.file)}:{kernel.name}"',
            f'entry = "{kernel.name}"',
            f"grid = {_list(kernel.grid)}",
            "block = [128, 1, 1]",
            "shared = 0",
            f"args = {_list(arguments)}",
            "variants = [",
        ]
        for variant in kernel.variants:
            name = file_name(kernel, variant)
            fields = [f'when = "{variant.when}"', f'ptx = "{name}"']
            if variant.warps != 4:
                fields.append(f"block = [{32 * variant.warps}, 1, 1]")
            if shared[name]:
                fields.append(f"shared = {shared[name]}")
            lines.append(f"  {{ {', '.join(fields)} }},")
        lines.append("]")
    return "\n".join(lines) + "\n"


def _list(values: Any) -> str:
    return "[" + ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in values) + "]"


def differences(files: dict[str, str]) -> list[str]:
    """Return, in words, how the folder differs from what belongs there."""
    there = {path.name for path in KEPT.iterdir()} if KEPT.is_dir() else set()
    found = [f"{name} is missing" for name in files.keys() - there]
    found += [f"{name} comes of no kernel" for name in there - files.keys()]
    for name in files.keys() & there:
        if (KEPT / name).read_text(encoding="utf-8") != files[name]:
            found.append(f"{name} is not what its source gives")
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
    parser = argparse.ArgumentParser(description="Compile the kernels of corpus/triton into corpus/ptx.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if the files would change"
    )
    check = parser.parse_args().check
    files = compile_all()
    found = differences(files)
    if not check:
        write(files)
    for line in found:
        print(f"corpus/ptx/{line}")
    size = sum(len(text.encode()) for text in files.values())
    verdict = f"{len(found)} differ" if check else f"{len(found)} changed"
    print(f"{len(files)} files, {size:,} bytes, {verdict}")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
