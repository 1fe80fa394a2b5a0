"""Runs the blocks of the documentation as a reader does; `mkdocs.yml` says how they are marked.

A page is worked through from top to bottom in an empty folder, with a daemon of its own; so are the marked
blocks of the README, whose Python examples are left to `readme_example.py`. What a page needs
that is not installed is left out. `GPUEMU_DOCS_NEEDS=triton` runs what needs Triton and nothing else;
where `CI=true` that may not be left out.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_blocks import Block, UnclosedBlockError, agrees, blocks_in

import gpuemu

CHECKOUT = Path(__file__).resolve().parents[2]
README = CHECKOUT / "README.md"
PATIENCE_SECONDS = 300
# Any one of the packages will do.
PACKAGES = {
    "triton": ("triton",),
    "pytorch": ("torch",),
    "ray": ("ray",),
    "cuda": ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvcc"),
}
MARK = re.compile(
    r'\.(?P<name>run|file|status-(?P<status>\d+)|needs-(?P<needs>\w+))(?!\S)|title="(?P<title>[^"]+)"'
)


class MarkError(ValueError):
    """A fence says something that this file does not know."""


@dataclass(frozen=True)
class Step:
    """A block that is run or written, where it stands, and what it prints if the page says so."""

    line: int
    language: str
    text: str
    file: str | None
    status: int
    expected: str | None
    needs: str | None


def steps_in(text: str) -> list[Step]:
    """Return what is to be done for a page, in order."""
    steps = []
    of_page = needs_of(text)
    for block in blocks_in(text):
        if block.marks is None:
            continue
        names, file, status, needs = marks_of(block)
        needs = needs or of_page
        if "file" in names:
            if file is None or names != {"file"}:
                raise MarkError(f"line {block.line}: a file has a title and nothing else")
            steps.append(Step(block.line, block.language, block.text, file, 0, None, needs))
        elif "run" in names:
            if block.language not in ("python", "sh"):
                raise MarkError(f"line {block.line}: nothing here runs '{block.language}'")
            steps.append(Step(block.line, block.language, block.text, None, status, block.shown, needs))
        else:
            raise MarkError(f"line {block.line}: neither .run nor .file")
    return steps


def marks_of(block: Block) -> tuple[set[str], str | None, int, str | None]:
    """Return the names in the braces of a fence, its title, the status that is expected and what it needs."""
    names: set[str] = set()
    file, status, needs = None, 0, None
    rest = MARK.sub("", block.marks or "").strip()
    if rest:
        raise MarkError(f"line {block.line}: '{rest}' has no meaning here")
    for mark in MARK.finditer(block.marks or ""):
        if mark["title"]:
            file = mark["title"]
        elif mark["status"]:
            status = int(mark["status"])
        elif mark["needs"]:
            needs = known_need(mark["needs"])
        else:
            names.add(mark["name"])
    return names, file, status, needs


def needs_of(text: str) -> str | None:
    """Return what the front matter of a page says that it needs."""
    front = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    found = re.search(r"^needs: *(.+)$", front[1], re.MULTILINE) if front else None
    return known_need(found[1]) if found else None


def known_need(name: str) -> str:
    """Return the name, if it is one of a package that can be needed."""
    if name not in PACKAGES:
        raise MarkError(f"nothing can need '{name}', only {', '.join(PACKAGES)}")
    return name


def pages() -> list[Path]:
    """Return the pages that have something to do."""
    found = []
    for page in [README, *sorted((CHECKOUT / "docs").rglob("*.md"))]:
        try:
            if steps_in(page.read_text(encoding="utf-8")):
                found.append(page)
        except (MarkError, UnclosedBlockError) as error:
            raise MarkError(f"{page.relative_to(CHECKOUT)}, {error}") from error
    return found


def wanted(steps: list[Step]) -> list[Step]:
    """Return what of a page is to be run here; skip it if that is nothing, fail if it was asked for."""
    asked = os.environ.get("GPUEMU_DOCS_NEEDS") or None
    strict = os.environ.get("CI") == "true"
    needed = {step.needs for step in steps if step.file is None}
    if asked is not None and asked not in needed:
        pytest.skip(f"only what needs {asked} was asked for")
    missing = {name for name in needed - {None} if not any(installed(package) for package in PACKAGES[name])}
    if strict and asked in missing:
        pytest.fail(f"{asked} is not installed")
    kept = [step for step in steps if step.needs not in missing and asked in (None, step.needs)]
    if all(step.file is not None for step in kept):
        pytest.skip(f"{', '.join(sorted(missing))} is not installed")
    # Files are written for whoever reads them, whatever that needs.
    if not os.environ.get("GPUEMU_DAEMON"):
        if strict:
            pytest.fail("GPUEMU_DAEMON is not set; run the tests by `cargo xtask test`")
        pytest.skip("GPUEMU_DAEMON is not set; `cargo xtask test` sets it")
    return [step for step in steps if step.file is not None or step in kept]


def installed(package: str) -> bool:
    """Whether a package can be imported, told without importing it."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def environment_for(folder: Path) -> dict[str, str]:
    """Return the environment of a reader who has the programs of gpuemu, this Python and this package."""
    # In CI, pytest repeats every message in its summary.
    left_out = ("GPUEMU_", "GITHUB_", "PYTEST_", "CI", "BUILD_NUMBER")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    programs = [Path(os.environ["GPUEMU_DAEMON"]).parent, Path(sys.executable).parent]
    return {
        **kept,
        "PATH": os.pathsep.join([*map(str, programs), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(Path(gpuemu.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        # The plugin is found by its entry point where the package is installed, which it is not here.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "gpuemu.pytest_plugin",
        "GPUEMU_HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "NO_COLOR": "1",
        # Triton says once that a default of it is going to change.
        "TRITON_DEFAULT_FP_FUSION": "1",
    }


def do(step: Step, work: Path, environment: dict[str, str]) -> str | None:
    """Do one step; return what is wrong with it, if anything."""
    if step.file is not None:
        file = work / step.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(step.text, encoding="utf-8")
        return None
    if step.language == "python":
        program = work / f"block_{step.line}.py"
        program.write_text(step.text, encoding="utf-8")
        command = [sys.executable, program.name]
    else:
        command = ["sh", "-e", "-c", step.text]
    try:
        ended = subprocess.run(
            command, cwd=work, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {PATIENCE_SECONDS} s"
    finally:
        if step.language == "python":
            program.unlink()
    said = f"{ended.stdout}{ended.stderr}"
    if ended.returncode != step.status:
        return f"it ended with {ended.returncode} in place of {step.status}:\n{said}"
    printed = ended.stdout or ended.stderr
    if step.expected is not None and not agrees(step.expected, printed):
        return f"it printed\n{printed}in place of\n{step.expected}"
    return None


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_page_does_what_it_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    steps = wanted(steps_in(text))
    # Not pytest's folder, whose path may be longer than that of a socket can be.
    folder = Path(tempfile.mkdtemp(prefix="gpuemu-docs-"))
    work, environment = folder / "work", environment_for(folder)
    work.mkdir()
    if "crates/" in text:
        # It is read in a checkout, whose files its commands name.
        (work / "crates").symlink_to(CHECKOUT / "crates")
    try:
        for step in steps:
            problem = do(step, work, environment)
            assert problem is None, f"{page.relative_to(CHECKOUT)}, line {step.line}: {problem}"
    finally:
        stop = ["gpuemu", "daemon", "stop"]
        subprocess.run(stop, cwd=work, env=environment, capture_output=True, timeout=60, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def test_there_are_pages_to_run_for_every_kind_of_reader() -> None:
    needed = {step.needs for page in pages() for step in steps_in(page.read_text(encoding="utf-8"))}
    assert needed == {None, *PACKAGES}


PAGE = """---
needs: triton
---
# A page

```toml { .file title="a/b.toml" }
x = 1
```

```sh { .run .status-1 }
cat a/b.toml; false
```

```text
x = ...
```

```python
shown()
```

- in a list

  ```python { .run }
  if True:
      print("one")
  ```

Words in between.

```text
something else
```
"""


def test_blocks_become_steps() -> None:
    file, shell, program = steps_in(PAGE)
    assert needs_of(PAGE) == "triton" and needs_of("# A page\n") is None
    assert (file.file, file.text, file.line) == ("a/b.toml", "x = 1\n", 6)
    assert (shell.language, shell.status, shell.expected) == ("sh", 1, "x = ...\n")
    assert (program.text, program.expected) == ('if True:\n    print("one")\n', None)


def test_steps_are_done_and_what_differs_is_named(tmp_path: Path) -> None:
    environment = dict(os.environ)
    file, shell, program = steps_in(PAGE)
    assert [do(step, tmp_path, environment) for step in (file, shell, program)] == [None, None, None]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
    wrong = steps_in('```python { .run }\nprint("two")\n```\n```text\none\n```\n')
    assert "in place of\none" in str(do(wrong[0], tmp_path, environment))
    failing = steps_in("```sh { .run }\nfalse\ntrue\n```\n")
    assert "ended with 1 in place of 0" in str(do(failing[0], tmp_path, environment))


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("```sh { .runs }\n```\n", "'.runs' has no meaning"),
        ("```sh { .run .needs-tritn }\n```\n", "nothing can need 'tritn'"),
        ("```toml { .run }\n```\n", "nothing here runs 'toml'"),
        ("```toml { .file }\n```\n", "a file has a title"),
        ('```toml { title="a" }\n```\n', "neither .run nor .file"),
    ],
)
def test_a_mark_that_is_not_known_is_an_error(page: str, says: str) -> None:
    with pytest.raises(MarkError, match=says):
        steps_in(page)


def test_a_page_cannot_need_what_nobody_knows() -> None:
    with pytest.raises(MarkError, match="'tritn'"):
        needs_of("---\nneeds: tritn\n---\n")
