"""The doors of Python: `gpuemu.check` in this process, and in tests that pytest runs."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pair import COMPILED, SIDES, Pair, Side
from programs import LONGEST_SECONDS, environment
from verdict import Verdict, of_findings, of_text, short, unjudged

import gpuemu
from gpuemu.reports import CheckReport

CASES, SEED = 60, 1
# The variable by which the tests that pytest runs find their pairs.
PAIRS_VARIABLE = "GPUEMU_TWINS"


def checked(pair: Pair, side: Side, **more: Any) -> CheckReport:
    """Run `gpuemu.check` on a twin, its launches in the PTX machine if it is compiled."""
    module = pair.imported()
    function = getattr(module, pair.functions[side])
    subject: Any = pair.op
    if pair.signature is not None:
        subject = gpuemu.op(pair.name, pair.signature, module.reference)
    options: dict[str, Any] = {
        "dtypes": pair.dtypes,
        "sizes": pair.sizes,
        "values": pair.values,
        "kwargs": pair.kwargs,
        "tolerance": pair.tolerance,
        "launches": pair.launches,
        "check_backward": pair.backward,
        "minimize": False,
    }
    if pair.language in COMPILED:
        # Every instruction is emulated: small cases, and few of them again.
        options |= {"budget": 4000, "repeats": 20}
    else:
        options["framework"] = pair.language
    with contextlib.ExitStack() as stack:
        if pair.language == "triton":
            stack.enter_context(gpuemu.triton.emulate(outputs=pair.outputs))
        return gpuemu.check(subject, function, **options, **more)


def by_check(pair: Pair) -> Mapping[Side, Verdict]:
    """Judge both twins by `gpuemu.check`."""
    return {side: _verdict(pair, side) for side in SIDES}


def _verdict(pair: Pair, side: Side) -> Verdict:
    try:
        report = checked(pair, side, cases=CASES, seed=SEED, store=False, raises=False)
    except Exception as error:  # One pair that cannot be run is no reason to leave the others out.
        return unjudged(short(f"{type(error).__name__}: {error}"))
    if report.passed:
        return Verdict(passed=True)
    findings = [
        (finding.check, finding.bug_class) for failure in report.failures for finding in failure.failures
    ]
    return of_findings(findings, short(str(report)))


def by_pytest(pairs: Sequence[Pair]) -> dict[str, Mapping[Side, Verdict]]:
    """Judge pairs of one language by tests, in one run of pytest."""
    with tempfile.TemporaryDirectory(prefix="gpuemu-twins-") as folder:
        given = Path(folder, "pairs.pickle")
        given.write_bytes(pickle.dumps(list(pairs)))
        test = Path(folder, "test_twins.py")
        test.write_text(_TEST, encoding="utf-8")
        variables = {PAIRS_VARIABLE: str(given)}
        options = [str(test), f"--gpuemu-cases={CASES}", f"--gpuemu-seed={SEED}"]
        told = run_pytest(Path(folder), options, variables)
    verdicts: dict[str, Mapping[Side, Verdict]] = {}
    for pair in pairs:
        of_pair = {side: told.get(f"test_twin[{pair.name}-{side}]") for side in SIDES}
        verdicts[pair.name] = {
            side: verdict or unjudged("pytest did not run it") for side, verdict in of_pair.items()
        }
    return verdicts


# As a user's test: what is checked is in the arguments, how often on the command line.
_TEST = '''"""Twins as tests."""

import os
import pickle
from pathlib import Path

import pytest
from checking import PAIRS_VARIABLE, checked

PAIRS = pickle.loads(Path(os.environ[PAIRS_VARIABLE]).read_bytes())


@pytest.mark.parametrize("side", ["right", "wrong"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_twin(pair, side):
    checked(pair, side)
'''


def run_pytest(folder: Path, arguments: Sequence[str], variables: Mapping[str, str]) -> dict[str, Verdict]:
    """Run pytest with gpuemu's plugin in a folder, and return the verdict of each test by its name."""
    results = folder / "twins-results.xml"
    runner = Path(__file__).parent
    more = environment(**variables)
    more |= {
        "PYTHONPATH": os.pathsep.join([more["PYTHONPATH"], str(runner)]),
        # By name, whether or not a build has left a description of the package beside it.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "gpuemu.pytest_plugin",
    }
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), "-p", "no:cacheprovider"]
    command += ["--gpuemu-no-store", f"--junitxml={results}", *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=more, capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS
    )
    if not results.is_file():
        raise RuntimeError(f"pytest wrote no results: {short(ended.stdout + ended.stderr)}")
    verdicts = {}
    for case in ElementTree.parse(results).iter("testcase"):
        trouble = [child for child in case if child.tag in ("failure", "error", "skipped")]
        if not trouble:
            verdicts[case.get("name", "")] = Verdict(passed=True)
        else:
            # What was raised, whole: the message beside it ends after some lines.
            lines = [line for child in trouble for line in (child.text or "").splitlines()]
            text = "\n".join(line[1:] for line in lines if line.startswith("E "))
            failed = all(child.tag == "failure" for child in trouble)
            verdicts[case.get("name", "")] = of_text(text) if failed else unjudged(short(text))
    return verdicts
