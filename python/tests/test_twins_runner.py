"""What runs the pairs of lab/twins: how pairs are read, and how verdicts are read off what gpuemu says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[2] / "lab/twins/runner"
LANGUAGES = ("numpy", "pytorch", "triton", "cuda")


@pytest.fixture(autouse=True)
def runner(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(RUNNER), *sys.path])


def written(folder: Path, pair: str, functions: str = "def right(x): ...\ndef wrong(x): ...\n") -> Path:
    # A module is imported once by its name.
    path = folder / f"pair_{abs(hash((pair, functions)))}.py"
    path.write_text(f"PAIR = {pair}\n{functions}")
    return path


def test_a_pair_goes_through_the_doors_that_it_has_settings_for(tmp_path):
    from pair import read_pair

    of = '"op": "relu", "checks": ["value"]'
    assert read_pair(written(tmp_path, f"{{{of}}}"), "numpy").doors() == ["check", "test", "pytest"]
    gradients = read_pair(written(tmp_path, f'{{{of}, "backward": True}}'), "pytorch")
    assert gradients.doors() == ["check", "pytest"]
    compiled = read_pair(written(tmp_path, f'{{{of}, "table": {{}}, "sanitize": {{}}}}'), "cuda")
    assert compiled.doors() == ["check", "pytest", "launch-table", "sanitize"]


@pytest.mark.parametrize(
    ("pair", "functions", "message"),
    [
        ('{"op": "relu", "checks": ["value"], "dtype": ["float32"]}', None, "PAIR has dtype; it may have"),
        ('{"op": "relu", "checks": ["value"]}', "def right(x): ...\n", "has no function wrong"),
        ('{"signature": "x[N] -> out[N]", "checks": ["value"]}', None, "has no function reference"),
        ('{"checks": ["value"]}', None, "needs an op or a signature"),
        ('{"op": "relu"}', None, "does not say which checks"),
    ],
)
def test_a_pair_that_is_not_written_as_it_has_to_be_is_refused(tmp_path, pair, functions, message):
    from pair import PairError, read_pair

    path = written(tmp_path, pair) if functions is None else written(tmp_path, pair, functions)
    with pytest.raises(PairError, match=message):
        read_pair(path, "numpy")


def test_what_pytest_prints_says_which_checks_fired():
    from verdict import of_text

    said = of_text(
        """AssertionError: relu: 3 of 5 cases failed (float32), callable relu
          float32, input[3], layout contiguous, regular values, seed 1
            missing_nan: 1 of 3 elements of 'out' differ [special values]
            worst at [0]: 0, expected nan (error 0, allowed 0)
          other failures: 1 x value [formula], 1 x shape [crash]
          reproduce: gpuemu.check("relu", relu, replay=1, dtypes=['float32'])"""
    )
    assert said.failed and not said.passed
    assert said.checks == {"missing_nan", "value", "shape"}
    assert said.classes == {"special_values", "formula", "crash"}
    # An error of another kind is no report of gpuemu: nothing was caught.
    broken = of_text("ImportError: cannot import name 'relu'")
    assert not broken.failed and not broken.passed and "ImportError" in broken.note


def test_a_pair_is_named_by_one_of_its_checks_and_one_of_its_classes():
    from pair import Pair
    from verdict import Verdict, of_findings, row

    pair = Pair("p", "numpy", RUNNER, "p", op="relu", checks=["race", "value"], classes=["race"])
    passed = Verdict(passed=True)

    def judged(right, *findings):
        verdicts = {"right": right, "wrong": of_findings(findings, "") if findings else passed}
        made = row(pair, "check", verdicts)
        return made["caught"], made["clean"], made["named"]

    assert judged(passed, ("race", "race")) == (True, True, True)
    assert judged(passed, ("value", "formula")) == (True, True, False)
    assert judged(passed, ("runner", "crash")) == (True, True, False)
    assert judged(passed) == (False, True, False)
    assert judged(Verdict(failed=True), ("race", "race")) == (True, False, True)
    # Where nothing is said of classes, checks are enough.
    unclassed = Verdict(failed=True, checks=frozenset(["race"]), classes=None)
    assert row(pair, "sanitize", {"right": passed, "wrong": unclassed})["named"]


def test_a_project_is_written_as_toml():
    from project import toml

    size = {"min": 1, "max": 8}
    assert toml({"H": size, "K": [2, 4]}) == "{ H = { min = 1, max = 8 }, K = [2, 4] }"
    assert toml('a "b"') == '"a \\"b\\""'
    assert toml(True) == "true"


def test_names_of_pairs_differ_in_all_folders():
    folder = RUNNER.parent
    names = [path.stem for language in LANGUAGES for path in folder.glob(f"{language}/*.py")]
    assert len(names) >= 12
    assert len(names) == len(set(names))
    sources = {path.stem for path in folder.glob("cuda/*.cu")}
    assert sources == {path.stem for path in folder.glob("cuda/*.py")}
