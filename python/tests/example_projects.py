"""Runs what the READMEs of the example projects show, in a copy of their folders.

Every line of a block fenced as `sh` is a command, run as somebody would paste it, in order and each in a new
shell. One that ends in `# exit status 1` has to end with that status, all others with 0. A block fenced as
`text` that follows, with nothing but blank lines in between, occurs in what these commands print; `...` there
stands for anything.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from markdown_blocks import blocks_in, occurs
from pytest_projects import environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE_SECONDS = 120

_STATUS = re.compile(r"#\s*exit status (\d+)\s*$")


@dataclass(frozen=True)
class Command:
    """A line for a shell, and the status with which it ends."""

    line: str
    status: int


@dataclass(frozen=True)
class Session:
    """Commands that stand together, where they stand, and what they print if the text says so."""

    number: int
    commands: list[Command]
    shown: str | None


def sessions_in(text: str) -> list[Session]:
    """Every block of commands with the text that directly follows it."""
    sessions = []
    for block in blocks_in(text):
        if block.language == "sh":
            commands = [command_of(line) for line in block.text.splitlines() if line.strip()]
            sessions.append(Session(block.line, commands, block.shown))
    return sessions


def command_of(line: str) -> Command:
    """Return the command of a line, with the status that its comment names."""
    named = _STATUS.search(line)
    return Command(line.strip(), int(named.group(1)) if named else 0)


def environment_of_examples() -> dict[str, str]:
    """Return the environment in which `gpuemu` is the program beside the daemon, and `python` this one."""
    programs = [Path(os.environ["GPUEMU_DAEMON"]).parent, Path(sys.executable).parent]
    search = os.pathsep.join([*map(str, programs), os.environ.get("PATH", "")])
    return environment(PATH=search, GPUEMU_PYTHON=sys.executable, NO_COLOR="1")


def problems_of(sessions: list[Session], folder: Path) -> list[str]:
    """Run the commands in a folder, and return what is not as it is shown."""
    problems = []
    for session in sessions:
        printed = ""
        for command in session.commands:
            ended = subprocess.run(
                ["bash", "-c", command.line],
                cwd=folder,
                env=environment_of_examples(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=PATIENCE_SECONDS,
            )
            printed += ended.stdout
            if ended.returncode != command.status:
                status = f"ended with {ended.returncode} in place of {command.status}"
                problems.append(f"{command.line}\n{status}:\n{ended.stdout}")
        if session.shown is not None and not occurs(session.shown, printed):
            problems.append(f"line {session.number} shows\n{session.shown}\nwhich is not in\n{printed}")
    return problems


def check_example(name: str, folder: Path) -> None:
    """Fail unless the commands of an example do what its README says, in a copy of it in this folder."""
    unwanted = shutil.ignore_patterns("__pycache__", ".pytest_cache")
    copy = Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=unwanted))
    sessions = sessions_in((copy / "README.md").read_text(encoding="utf-8"))
    statuses = {command.status for session in sessions for command in session.commands}
    assert statuses == {0, 1}, f"the README of {name} shows no right kernel, or no wrong one"
    problems = problems_of(sessions, copy)
    assert not problems, "\n\n".join([f"The README of {name}:", *problems])
