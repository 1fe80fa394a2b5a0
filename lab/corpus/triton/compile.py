"""Compiles the Triton kernels of the corpus for sm_80, and writes their launch tables.

python lab/corpus/triton/compile.py               # write the PTX of lab/corpus/triton into lab/corpus/ptx
python lab/corpus/triton/compile.py --set grown   # write that of lab/corpus/grown/triton into its `ptx`
python lab/corpus/triton/compile.py --check       # write nothing; exit 1 and name the files that would change

Needs Triton, and no GPU.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True

from compiled_text import kept  # noqa: E402
from launch import Kernel, Variant, type_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
TARGET = 80


@dataclass(frozen=True)
class KernelSet:
    """Kernels that are kept together. Folders and files are named from the root of the repository."""

    title: str
    """What the launch table says of them."""
    sources: str
    """Their folder, which has a `launches.py` too."""
    ptx: str
    """The folder of their PTX, where nothing else is but the launch table, if that is there."""
    table: str
    ptx_in_table: str
    """What the launch table puts before the name of a PTX file."""


SETS = {
    "published": KernelSet(
        "The published Triton kernels",
        "lab/corpus/triton",
        "lab/corpus/ptx",
        "lab/corpus/ptx/kernels.toml",
        "",
    ),
    "grown": KernelSet(
        "The Triton kernels of the grown corpus",
        "lab/corpus/grown/triton",
        "lab/corpus/grown/triton/ptx",
        "lab/corpus/grown/triton/kernels.toml",
        "ptx/",
    ),
}


@cache
def _run(source: str) -> dict[str, Any]:
    """Return what a Python file defines."""
    return runpy.run_path(str(ROOT / source))


def kernels_of(chosen: KernelSet) -> list[Kernel]:
    """Return the kernels of a set, in the order of its launch table."""
    kernels: list[Kernel] = _run(f"{chosen.sources}/launches.py")["KERNELS"]
    return kernels


def compile_variant(chosen: KernelSet, kernel: Kernel, variant: Variant) -> tuple[str, int]:
    """Return the PTX of a variant, as it is kept, and its dynamic shared memory."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    file = f"{chosen.sources}/{kernel.file}"
    function = _run(file)[kernel.name]
    types = iter(kernel.types)
    signature = {
        name: "constexpr" if name in variant.constants else type_of(next(types), variant.dtype)
        for name in function.arg_names
    }
    # Without fusion, as Triton will do by default. With it, the lanes that hold copies of one sum fuse other
    # products into it each and no longer agree in the last bit: one copy ends up in a numerator, and another
    # one in its denominator.
    options = {"num_warps": variant.warps, "enable_fp_fusion": False}
    source = ASTSource(function, signature, variant.constants, {})
    compiled = triton.compile(source, target=GPUTarget("cuda", TARGET, 32), options=options)
    return kept(compiled.asm["ptx"], file), int(compiled.metadata.shared)


def compile_all(chosen: KernelSet) -> dict[str, str]:
    """Return every file of a set, its launch table included, by its name from the root of the repository."""
    kernels = kernels_of(chosen)
    work = [(kernel, variant) for kernel in kernels for variant in kernel.variants]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        with ProcessPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
            compiling = partial(compile_variant, chosen)
            done = list(pool.map(compiling, *zip(*work, strict=True), chunksize=4))
    files: dict[str, str] = {}
    shared: dict[str, int] = {}
    for (kernel, variant), (ptx, shared_bytes) in zip(work, done, strict=True):
        name = file_name(kernel, variant)
        files[f"{chosen.ptx}/{name}"], shared[name] = ptx, shared_bytes
    files[chosen.table] = table(chosen, kernels, shared)
    return files


def file_name(kernel: Kernel, variant: Variant) -> str:
    """Return the file that a variant's PTX is in."""
    return f"{kernel.name}_{variant.label}.ptx"


def table(chosen: KernelSet, kernels: list[Kernel], shared: dict[str, int]) -> str:
    """Return the launch table."""
    import triton

    lines = [
        f"# {chosen.title}, compiled for sm_{TARGET} with Triton {triton.__version__}.",
        "# Written by lab/corpus/triton/compile.py: do not edit.",
        "# Kernels that take no stride read contiguous tensors only. The two null pointers are for scratch",
        "# memory, which Triton adds to every kernel.",
    ]
    for kernel in kernels:
        arguments = [*kernel.arguments, "null", "null"]
        lines += [
            "",
            "[[kernels]]",
            f'name = "{kernel.name}"',
            f'source = "{chosen.sources}/{kernel.file}:{kernel.name}"',
            f'entry = "{kernel.name}"',
            f"grid = {_list(kernel.grid)}",
            "block = [128, 1, 1]",
            "shared = 0",
            f"args = {_list(arguments)}",
            "variants = [",
        ]
        for variant in kernel.variants:
            name = file_name(kernel, variant)
            fields = [f'when = "{variant.when}"', f'ptx = "{chosen.ptx_in_table}{name}"']
            if variant.warps != 4:
                fields.append(f"block = [{32 * variant.warps}, 1, 1]")
            if shared[name]:
                fields.append(f"shared = {shared[name]}")
            lines.append(f"  {{ {', '.join(fields)} }},")
        lines.append("]")
    return "\n".join(lines) + "\n"


def _list(values: Any) -> str:
    return "[" + ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in values) + "]"


def there(chosen: KernelSet) -> set[str]:
    """Return the files that are there now, named from the root of the repository."""
    folder = ROOT / chosen.ptx
    found = {f"{chosen.ptx}/{path.name}" for path in folder.iterdir()} if folder.is_dir() else set()
    return found | ({chosen.table} if (ROOT / chosen.table).is_file() else set())


def differences(chosen: KernelSet, files: dict[str, str]) -> list[str]:
    """Return, in words, how what is there differs from what belongs there."""
    present = there(chosen)
    found = [f"{name} is missing" for name in files.keys() - present]
    found += [f"{name} comes of no kernel" for name in present - files.keys()]
    for name in files.keys() & present:
        if (ROOT / name).read_text(encoding="utf-8") != files[name]:
            found.append(f"{name} is not what its source gives")
    return sorted(found)


def write(chosen: KernelSet, files: dict[str, str]) -> None:
    """Make the folder what it should be."""
    (ROOT / chosen.ptx).mkdir(exist_ok=True)
    for name in there(chosen) - files.keys():
        (ROOT / name).unlink()
    for name, text in files.items():
        (ROOT / name).write_text(text, encoding="utf-8", newline="\n")


def main() -> int:
    """Write the files of a set, or check them."""
    parser = argparse.ArgumentParser(description="Compile the Triton kernels of the corpus.")
    parser.add_argument("--set", choices=SETS, default="published", help="which kernels (default: published)")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if the files would change"
    )
    arguments = parser.parse_args()
    chosen, check = SETS[arguments.set], arguments.check
    files = compile_all(chosen)
    found = differences(chosen, files)
    if not check:
        write(chosen, files)
    for line in found:
        print(line)
    size = sum(len(text.encode()) for text in files.values())
    verdict = f"{len(found)} differ" if check else f"{len(found)} changed"
    print(f"{len(files)} files, {size:,} bytes, {verdict}")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
