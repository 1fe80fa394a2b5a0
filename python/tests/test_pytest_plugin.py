"""The pytest plugin, in a real pytest with a real daemon."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pytest_projects import KERNELS, run_line, run_pytest

from gpuemu.client import Client

pytest_plugins = ["daemon_fixtures"]

TESTS = """
import gpuemu
import pytest
from kernels import now_and_then, relu


def test_wrong():
    gpuemu.check("relu", now_and_then)


@pytest.mark.parametrize("way", ["by a fixture", "again"])
def test_wrong_in(gpuemu_check, way):
    gpuemu_check("relu", now_and_then)


def test_right(gpuemu_check):
    report = gpuemu_check("relu", relu)
    assert gpuemu_check.reports == [report]
    print(f"<{report.cases} cases from {report.seed}>")


@pytest.mark.gpuemu(cases=7, seed=3)
class TestMarked:
    def test_marked(self, gpuemu_check):
        report = gpuemu_check("relu", relu)
        print(f"<{report.cases} cases from {report.seed}>")

    @pytest.mark.gpuemu(cases=4)
    def test_marked_twice(self, gpuemu_check):
        report = gpuemu_check("relu", relu)
        print(f"<{report.cases} cases from {report.seed}>")

    def test_told(self, gpuemu_check):
        report = gpuemu_check("relu", relu, cases=2, seed=8)
        print(f"<{report.cases} cases from {report.seed}>")

    def test_looked_at(self, gpuemu_check):
        assert not gpuemu_check("relu", now_and_then, raises=False, cases=60)
        assert len(gpuemu_check.reports) == 1
"""


@pytest.fixture
def folder(daemon_home: Path, project: Path) -> Path:
    """Return a folder of tests."""
    (project / "kernels.py").write_text(KERNELS)
    below = project / "tests"
    below.mkdir()
    (project / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (below / "test_kernels.py").write_text(TESTS)
    return project


def reproduce_lines(text: str) -> list[str]:
    return re.findall(r"reproduce: (.*)", text)


def test_markers_and_options_set_what_a_test_does_not(folder: Path) -> None:
    chosen = ["-s", "-q", "-k", "right or marked or told or looked_at"]
    ended = run_pytest(folder, *chosen, "--gpuemu-seed=11")
    assert ended.returncode == 0, ended.stdout
    shown = re.findall(r"<(\d+) cases from (\d+)>", ended.stdout)
    # What the command line says counts more than a marker, and what a call says most.
    assert shown == [("100", "11"), ("7", "11"), ("4", "11"), ("2", "8")]
    ended = run_pytest(folder, *chosen, "--gpuemu-cases", "5")
    shown = re.findall(r"<(\d+) cases from (\d+)>", ended.stdout)
    assert [count for count, _ in shown] == ["5", "5", "5", "2"]
    assert [seed for _, seed in shown[1:]] == ["3", "3", "8"] and shown[0][1] != "11"


def test_a_failure_is_shown_without_the_insides_of_gpuemu(folder: Path) -> None:
    ended = run_pytest(folder, "-k", "wrong", "--gpuemu-seed=1")
    assert ended.returncode == 1 and ended.stdout.count("of 100 cases failed (float32)") == 3
    assert "checking.py" not in ended.stdout and "pytest_plugin.py" not in ended.stdout
    assert "During handling" not in ended.stdout
    assert 'gpuemu.check("relu", now_and_then)' in ended.stdout
    assert "callable tests/test_kernels.py::test_wrong_in[by a fixture]" in ended.stdout


def test_the_line_that_reproduces_is_runnable_as_it_is_printed(folder: Path) -> None:
    # The line names the test as it is called in the folder where pytest was started.
    for start, test in (
        (folder, "tests/test_kernels.py::test_wrong"),
        (folder / "tests", "test_kernels.py::test_wrong_in[by a fixture]"),
    ):
        ended = run_pytest(start, test, "--gpuemu-seed=1", "--gpuemu-no-store")
        (line,) = reproduce_lines(ended.stdout)
        again = run_line(start, f"{line} --gpuemu-no-store")
        assert again.returncode == 1 and "1 of 1 cases failed" in again.stdout, again.stdout
        assert reproduce_lines(again.stdout) == [line]
        seed = line.rpartition("=")[2]
        first, second = (re.search(rf"seed {seed}\n.*\n.*", text) for text in (ended.stdout, again.stdout))
        assert first is not None and second is not None
        assert first.group().split() == second.group().split()
    assert line.startswith("pytest 'test_kernels.py::test_wrong_in[by a fixture]' --gpuemu-replay=")


KEPT = """
import gpuemu
import pytest
from kernels import now_and_then


def test_it():
    gpuemu.check("relu", now_and_then)


@pytest.mark.gpuemu(replay_failures=False)
def test_anew():
    gpuemu.check("relu", now_and_then)
"""


def test_failures_are_stored_and_tried_first_in_the_next_run(folder: Path) -> None:
    (folder / "tests" / "test_kernels.py").write_text(KEPT)
    assert run_pytest(folder, "--gpuemu-seed=1").returncode == 1
    with Client(project=folder) as client:
        stored = client.list_failures("relu")
    tests = {f"callable tests/test_kernels.py::{name}" for name in ("test_it", "test_anew")}
    assert {failure.runner for failure in stored} == tests and all(failure.client_side for failure in stored)
    own = [failure for failure in stored if failure.runner.endswith("test_it")]
    # One new case alone passes; what was found by another seed is not lost.
    ended = run_pytest(folder, "--gpuemu-cases=1", "--gpuemu-seed=2", "-v")
    assert "::test_it FAILED" in ended.stdout and "::test_anew PASSED" in ended.stdout
    found = re.search(r"relu: (\d+) of (\d+) cases failed", ended.stdout)
    tried = min(len(own), 20)
    assert found is not None and (int(found.group(1)), int(found.group(2))) == (tried, tried + 1)
    # Once the kernel is right, they pass.
    kernels = folder / "kernels.py"
    kernels.write_text(kernels.read_text().replace(" + input.dtype.type(input.size % 5 == 3)", ""))
    ended = run_pytest(folder, "--gpuemu-cases=1", "--gpuemu-seed=2")
    assert ended.returncode == 0, ended.stdout


def test_without_storing_no_daemon_is_started(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "unused"
    chosen = ("-k", "test_wrong or test_right", "-s", "--gpuemu-replay=5", "--gpuemu-replay=0x10")
    ended = run_pytest(folder, *chosen, "--gpuemu-no-store", GPUEMU_HOME=str(home))
    assert "<2 cases from" in ended.stdout and not home.exists()
    (folder / "tests" / "test_kernels.py").write_text(
        "import gpuemu\nimport pytest\nfrom kernels import relu\n\n\n"
        "@pytest.mark.gpuemu(store=False)\ndef test_it():\n    gpuemu.check('relu', relu)\n"
    )
    assert run_pytest(folder, GPUEMU_HOME=str(home)).returncode == 0
    assert not home.exists()


def test_what_makes_no_sense_is_refused(folder: Path) -> None:
    for option, words in (
        ("--gpuemu-cases=many", "argument --gpuemu-cases: many is not a number of cases; give 1 or more"),
        ("--gpuemu-replay=-1", "argument --gpuemu-replay: the seed -1 is not a whole number of 64 bits"),
    ):
        ended = run_pytest(folder, option)
        assert ended.returncode == 4 and words in ended.stderr
    (folder / "tests" / "test_kernels.py").write_text(
        "import pytest\n\n\n@pytest.mark.gpuemu(case=3)\ndef test_keyword():\n    pass\n\n\n"
        "@pytest.mark.gpuemu(3)\ndef test_position():\n    pass\n"
    )
    ended = run_pytest(folder, "--strict-markers")
    assert ended.returncode == 1
    assert (
        "tests/test_kernels.py::test_keyword: the marker gpuemu has no 'case'; it has cases, seed, store, "
        "replay_failures\n" in ended.stdout
    )
    assert "tests/test_kernels.py::test_position: the marker gpuemu takes keywords only\n" in ended.stdout
    assert "pytest_plugin.py" not in ended.stdout


def test_a_reference_that_raises_is_an_error_of_the_test(folder: Path) -> None:
    (folder / "tests" / "test_kernels.py").write_text(
        "import gpuemu\n\n\ndef lost(x):\n    raise KeyError('lost')\n\n\n"
        "def test_it(gpuemu_check):\n    gpuemu_check(gpuemu.op('own', 'x[N] -> out[N]', lost), abs)\n"
    )
    ended = run_pytest(folder, "--gpuemu-no-store")
    assert ended.returncode == 1
    assert "gpuemu.errors.ClientError: own: not judged after 1 case" in ended.stdout
    assert "the reference of 'own' failed: it raised KeyError: 'lost'" in ended.stdout


def test_the_options_are_listed(folder: Path) -> None:
    assert "--gpuemu-replay=SEED  run the case of this seed" in run_pytest(folder, "--help").stdout
