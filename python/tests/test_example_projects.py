"""What runs the example projects, and that there is a test of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from example_projects import EXAMPLES, Command, Session, problems_of, sessions_in

TEXT = """Intro
```sh
gpuemu test
cd wrong && gpuemu test    # exit status 1
```

```text
PASS ... cases
```

```sh
ls    # no status
```
Words
```text
of something else
```
"""


def test_commands_are_read_with_their_status_and_what_they_print() -> None:
    first, second = sessions_in(TEXT)
    assert [command.status for command in first.commands] == [0, 1]
    assert (first.number, first.shown) == (2, "PASS ... cases\n")
    assert second == Session(11, [Command("ls    # no status", 0)], None)


def test_another_status_and_another_text_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUEMU_DAEMON", str(tmp_path / "gpuemu-daemon"))
    right = Session(1, [Command("echo one", 0), Command("exit 1  # exit status 1", 1)], "one")
    assert problems_of([right], tmp_path) == []
    (status,) = problems_of([Session(1, [Command("exit 2", 0)], None)], tmp_path)
    assert "ended with 2 in place of 0" in status
    (text,) = problems_of([Session(7, [Command("echo one", 0)], "two")], tmp_path)
    assert "line 7 shows\ntwo" in text and "one" in text


def test_every_example_is_in_the_table_and_has_a_test() -> None:
    folders = {folder.name for folder in EXAMPLES.iterdir() if folder.is_dir()}
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert folders == set(re.findall(r"^\| \[\w+\]\((\w+)/README\.md\)", table, re.MULTILINE))
    tests = "".join(
        file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_examples_*.py")
    )
    assert all(f'"{name}"' in tests for name in folders)
