"""Checks that nothing is missing in a wheel and in a source archive, and that nothing is left over."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST_WHEEL = 40 << 20

# Without these there is no build; the tests and the documents come along.
SOURCE_FOLDERS = [
    "crates",
    "docs",
    "examples",
    "integrations",
    "lab",
    "python",
    "testdata",
    "xtask",
]
SOURCE_FILES = [
    "Cargo.toml",
    "Cargo.lock",
    ".cargo/config.toml",
    "deny.toml",
    "mkdocs.yml",
    "pyproject.toml",
    "setup.cfg",
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
]

GENERATED_FOLDERS = {
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    "screenshots",
    "target",
}
# What setuptools itself adds to a source archive.
DESCRIPTION = ("PKG-INFO", "MANIFEST.in", "setup.cfg", "python/gpuemu.egg-info")
GENERATED_ENDINGS = (".so", ".pyd", ".pyc", ".new", "~")


def source_files(folder: Path) -> Iterable[Path]:
    """The files that were written by people, relative to the root."""
    for parent, folders, files in os.walk(folder):
        kept = [name for name in folders if name not in GENERATED_FOLDERS and not name.endswith(".egg-info")]
        folders[:] = kept
        for name in files:
            if not name.endswith(GENERATED_ENDINGS):
                yield Path(parent, name).relative_to(ROOT)


def check_wheel(path: Path) -> Iterable[str]:
    """What is wrong with the wheel."""
    if "-cp310-abi3-" not in path.name:
        yield f"{path.name} is not for every Python from 3.10 on"
    if path.stat().st_size > LARGEST_WHEEL:
        yield f"it has {path.stat().st_size >> 20} MiB: was nothing stripped?"
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
    for program in ("gpuemu", "gpuemu-daemon"):
        found = [entry for name, entry in entries.items() if name.endswith(f".data/scripts/{program}")]
        if len(found) != 1:
            yield f"the program {program} is in it {len(found)} times"
        elif not found[0].external_attr >> 16 & 0o111:
            yield f"the program {program} is not executable"
    expected = {"gpuemu/_native.abi3.so"}
    for file in source_files(ROOT / "python" / "gpuemu"):
        expected.add(file.relative_to("python").as_posix())
    found_modules = {name for name in entries if name.startswith("gpuemu/")}
    yield from (f"{name} is missing" for name in sorted(expected - found_modules))
    yield from (f"{name} is left over" for name in sorted(found_modules - expected))
    yield from check_requirements(archive_text(path, "METADATA"))


def archive_text(path: Path, name: str) -> str:
    """A file of the wheel's description."""
    with zipfile.ZipFile(path) as archive:
        found = [entry for entry in archive.namelist() if entry.endswith(f".dist-info/{name}")]
        return archive.read(found[0]).decode()


def check_requirements(metadata: str) -> Iterable[str]:
    """What is wrong with what the wheel asks for."""
    required: dict[str, set[str]] = {}
    for line in metadata.partition("\n\n")[0].splitlines():
        field, _, requirement = line.partition(": ")
        if field == "Requires-Dist":
            package, _, condition = requirement.partition(";")
            required.setdefault(condition.partition("extra == ")[2].strip("\"' "), set()).add(package.strip())
    everything = set().union(*required.values())
    # In an index the name is another project's.
    yield from (f"it asks for {package}" for package in sorted(everything) if package.startswith("gpuemu"))
    extras = set().union(*(packages for extra, packages in required.items() if extra not in ("", "all")))
    if required.get("all") != extras:
        yield f"the extra all asks for {sorted(required.get('all', ()))} in place of {sorted(extras)}"


def check_source_archive(path: Path) -> Iterable[str]:
    """What is wrong with the source archive."""
    with tarfile.open(path) as archive:
        # The first part of every name is the archive's own folder.
        names = {entry.name.partition("/")[2] for entry in archive if not entry.isdir()}
    expected = set(SOURCE_FILES)
    for folder in SOURCE_FOLDERS:
        expected.update(file.as_posix() for file in source_files(ROOT / folder))
    yield from (f"{name} is missing" for name in sorted(expected - names))
    left_over = {name for name in names - expected if not name.startswith(DESCRIPTION)}
    # At the root there are files that no build needs, and all of them were written.
    left_over -= {name for name in left_over if (ROOT / name).is_file() and "/" not in name}
    yield from (f"{name} is left over" for name in sorted(left_over))


def main() -> int:
    """Check the wheel and the source archive named on the command line."""
    wheel, source = map(Path, sys.argv[1:])
    problems = [f"wheel: {problem}" for problem in check_wheel(wheel)]
    problems += [f"source archive: {problem}" for problem in check_source_archive(source)]
    for problem in problems:
        print(problem)
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in (wheel, source))
    print(f"{sizes}: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
