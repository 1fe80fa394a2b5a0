"""Runs the Python examples of the README as a reader does, and compares what they print.

Every block fenced as `python` is a program of its own, run in an empty folder with a daemon of its own. A
block fenced as `text` that follows it, with nothing but blank lines in between, is what it prints; `...`
there stands for anything. Not to find any example is a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from markdown_blocks import agrees, blocks_in

README = Path(__file__).resolve().parents[2] / "README.md"
PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class Example:
    """A program, where it stands, and what it prints if the text says so."""

    line: int
    program: str
    expected: str | None

    def needs_triton(self) -> bool:
        """Whether it is a kernel for Triton to compile."""
        return re.search(r"^import triton$", self.program, re.MULTILINE) is not None


def examples_in(text: str) -> list[Example]:
    """Every Python block with the text that directly follows it."""
    python = [block for block in blocks_in(text) if block.language == "python"]
    return [Example(block.line + 1, block.text, block.shown) for block in python]


def environment_for(home: Path) -> dict[str, str]:
    """The environment of a user whose folder of gpuemu is `home` and who has this Python's programs."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": programs, "GPUEMU_HOME": str(home), "NO_COLOR": "1"}


def run(example: Example) -> str | None:
    """What is wrong with the example, if anything."""
    with tempfile.TemporaryDirectory(prefix="gpuemu-readme-") as folder:
        work, home = Path(folder, "work"), Path(folder, "home")
        work.mkdir()
        program = work / "example.py"
        program.write_text(example.program, encoding="utf-8")
        environment = environment_for(home)
        try:
            finished = subprocess.run(
                [sys.executable, program.name],
                cwd=work,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"it did not end within {PATIENCE_SECONDS} s"
        finally:
            stop_daemon(work, environment)
    if finished.returncode != 0:
        return f"it ended with {finished.returncode}:\n{finished.stdout}{finished.stderr}"
    if example.expected is not None and not agrees(example.expected, finished.stdout):
        return f"it printed\n{finished.stdout}in place of\n{example.expected}"
    return None


def stop_daemon(folder: Path, environment: dict[str, str]) -> None:
    """Stops the daemon that the example may have started: its folder is about to go."""
    gpuemu = Path(sys.executable).with_name("gpuemu")
    if gpuemu.exists():
        command = [str(gpuemu), "daemon", "stop"]
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=60, check=False)


def main() -> int:
    """Run every example; 0 if all of them do what the README says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("readme", nargs="?", type=Path, default=README)
    readme: Path = parser.parse_args().readme
    examples = examples_in(readme.read_text(encoding="utf-8"))
    if not examples:
        print(f"{readme.name} has no block fenced as python")
        return 1
    wrong = 0
    for example in examples:
        if example.needs_triton():
            print(f"{readme.name}, line {example.line}: left to test_readme_kernels.py, which has Triton")
            continue
        problem = run(example)
        print(f"{readme.name}, line {example.line}: {problem or 'as shown'}")
        wrong += problem is not None
    print(f"{len(examples)} examples, {wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
