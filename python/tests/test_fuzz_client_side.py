"""`Client.fuzz_op_client_side`, with a real daemon."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_kernels import Array, matmul, padded_softmax, relu, softmax

import gpuemu
from gpuemu.client import Client
from gpuemu.errors import ClientError, ValidationError
from gpuemu.reports import FuzzResults
from gpuemu.rng import case_seed

pytest_plugins = ["daemon_fixtures"]


def test_inputs_come_as_one_dict_by_name_or_in_order(client: Client) -> None:
    functions: list[Any] = [
        lambda inputs: matmul(inputs["a"], inputs["b"]),
        lambda a, b: matmul(a, b),
        lambda b, a: matmul(a, b),
        lambda left, right: matmul(left, right),
        lambda *arrays: matmul(*arrays),
    ]
    for function in functions:
        results = client.fuzz_op_client_side("matmul", function, 15, seed=1)
        assert results.all_passed, str(results)
    alone: list[Any] = [
        lambda inputs: relu(inputs["input"]),
        lambda input: relu(input),
        lambda case, *, extra=None: relu(case["input"]),
    ]
    for function in alone:
        assert client.fuzz_op_client_side("relu", function, 15, seed=1).all_passed


def test_parameters_come_beside_the_dict(client: Client) -> None:
    seen: set[float] = set()

    def rmsnorm(inputs: dict[str, Array], eps: float) -> Array:
        seen.add(eps)
        wide = inputs["input"].astype(np.float64)
        scale = 1 / np.sqrt((wide**2).mean(axis=-1, keepdims=True) + eps)
        weight = inputs["weight"].astype(np.float64) if "weight" in inputs else 1.0
        result: Array = (wide * scale * weight).astype(inputs["input"].dtype)
        return result

    settings: dict[str, Any] = {"seed": 2, "sizes": {"H": (1, 64)}, "value_distribution": "regular"}
    results = client.fuzz_op_client_side("rmsnorm", rmsnorm, 20, kwargs={"eps": 0.25}, **settings)
    assert results.all_passed and seen == {0.25}, str(results)
    same = client.fuzz_op_client_side("rmsnorm", rmsnorm, 20, parameters={"eps": 0.25}, **settings)
    assert same.passed == results.passed


def test_results_index_like_a_dict(client: Client) -> None:
    results = client.fuzz_op_client_side("softmax", padded_softmax, iterations=20, seed=1, dtypes=["float16"])
    assert isinstance(results, FuzzResults) and not results.all_passed
    assert results["passed"] == results.passed and results["total"] == results.total == 20
    assert results.passed + results.failed == 20 and results["failed"] == len(results["failures"]) > 0
    assert "seed" in results and results.get("nothing", 5) == 5 and set(results) == set(results.keys())
    assert results.status == "failed" and results.seed == 1 and results.report.op == "softmax"
    with pytest.raises(KeyError):
        results["nothing"]
    lines = str(results).splitlines()
    assert lines[0] == f"softmax: {results.passed} of 20 cases passed, base seed 1"
    assert f"seed {results.failures[0].seed}" in lines[1] and lines[1].startswith("  float16, input[")


def test_a_failure_is_replayed_by_its_seed(client: Client) -> None:
    settings: dict[str, Any] = {"dtypes": ["bfloat16"], "sizes": {"H": (3, 70)}}
    results = client.fuzz_op_client_side("softmax", padded_softmax, 20, seed=1, **settings)
    failure = results.failures[0]
    for replay in (failure.seed, [failure.seed], (np.uint64(failure.seed),)):
        again = client.fuzz_op_client_side("softmax", padded_softmax, replay=replay, **settings)
        assert (again.total, again.failed) == (1, 1)
        assert again.failures[0].failures == failure.failures and again.failures[0].case == failure.case
    assert failure.replay == (
        f'client.fuzz_op_client_side("softmax", run_op, replay={failure.seed}, '
        "dtypes=['bfloat16'], sizes={'H': (3, 70)})"
    )
    names = {"client": client, "run_op": padded_softmax}
    assert eval(failure.replay, names).failures[0].failures == failure.failures
    assert client.fuzz_op_client_side("softmax", softmax, replay=failure.seed, **settings).all_passed


def test_every_seed_is_stored_under_one_run(client: Client) -> None:
    results = client.fuzz_op_client_side("softmax", padded_softmax, 30, seed=7)
    assert results.run is not None and results.warnings == []
    stored = client.list_results("softmax")
    assert [result.seed for result in reversed(stored)] == [case_seed(7, index) for index in range(30)]
    assert {result.run for result in stored} == {results.run}
    failures = {failure.seed for failure in results.failures}
    assert {result.seed for result in client.list_failures("softmax")} == failures
    kept = client.get_result(results.failures[0].seed)
    assert kept.client_side and kept.inputs is not None and kept.replay == results.failures[0].replay
    second = client.fuzz_op_client_side("softmax", softmax, 5, seed=8)
    assert second.run is not None and second.run > results.run


def test_a_seed_that_nobody_gave_is_another_each_time(client: Client) -> None:
    first, second = (client.fuzz_op_client_side("relu", relu, 2) for _ in range(2))
    assert first.seed != second.seed


def test_failures_may_be_raised_and_end_the_run(client: Client) -> None:
    with pytest.raises(ValidationError) as caught:
        client.fuzz_op_client_side(
            "softmax", padded_softmax, 50, seed=1, raise_on_failure=True, fail_fast=True
        )
    assert caught.value.result is not None and not caught.value.result.passed
    assert str(caught.value).startswith("softmax: 0 of 1 cases passed, base seed 1\n  float32, input[")
    assert client.fuzz_op_client_side("relu", relu, 5, raise_on_failure=True).all_passed
    told: list[tuple[int, int, int]] = []

    def slow(input: Array) -> Array:
        time.sleep(0.01)
        return relu(input)

    client.fuzz_op_client_side("relu", slow, 20, progress=lambda *numbers: told.append(numbers))
    assert told and {planned for _, planned, _ in told} == {20} and told[-1][2] == 0


def test_the_framework_can_be_named(client: Client) -> None:
    seen: set[type] = set()

    def look(input: Any) -> Any:
        seen.add(type(input))
        return relu(input)

    for framework in ("numpy", gpuemu.frameworks.adapter("numpy"), None):
        assert client.fuzz_op_client_side("relu", look, 5, framework=framework).all_passed
    assert seen == {np.ndarray}
    with pytest.raises(ValueError, match="unknown framework 'nunpy'; did you mean 'numpy'?"):
        client.fuzz_op_client_side("relu", relu, framework="nunpy")


def test_ops_of_a_program_have_their_tolerance(client: Client) -> None:
    same = gpuemu.op("same", "x[N] -> out[N]", lambda x: x, tolerance=2e-3)
    nearly = client.fuzz_op_client_side(
        same, lambda x: x * np.float32(1.001), 20, value_distribution="regular", seed=1
    )
    assert nearly.all_passed, str(nearly)
    wrong = client.fuzz_op_client_side(same, lambda x: x * np.float32(1.1), 20, value_distribution="regular")
    assert not wrong.all_passed and wrong.failures[0].replay.startswith("client.fuzz_op_client_side(same, ")
    assert len(client.list_results("same")) == 40


def test_without_a_daemon_the_results_come_with_a_warning(
    unused_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUEMU_DAEMON", str(unused_home / "none"))
    with Client() as client:
        results = client.fuzz_op_client_side("relu", relu, 5, seed=1)
    assert results.all_passed and results.run is None
    assert len(results.warnings) == 1 and results.warnings[0].startswith("results are not stored: the daemon")


def test_what_makes_no_sense_is_refused(client: Client) -> None:
    for settings, kind, words in (
        (
            {"size": 3},
            TypeError,
            "fuzz_op_client_side has no 'size'; what cases are drawn from: dtypes, layouts",
        ),
        ({"iterations": 0}, ValueError, "cases is 0; it must be 1 or more"),
        ({"seed": -1}, ValueError, "the seed -1 is not a whole number of 64 bits"),
        ({"value_distribution": "odd"}, ValueError, "unknown value strategy 'odd'"),
        ({"dtypes": "float32"}, TypeError, "dtypes is the text 'float32'; give a list"),
    ):
        with pytest.raises(kind, match=words):
            client.fuzz_op_client_side("relu", relu, **settings)
    with pytest.raises(ClientError, match="there is no op 'rellu'\nhint: did you mean 'relu'?"):
        client.fuzz_op_client_side("rellu", relu)
    with pytest.raises(TypeError, match="the op is a function"):
        client.fuzz_op_client_side(relu, relu)  # type: ignore[arg-type]
    assert client.list_results() == []


def test_cases_are_made_while_the_callable_runs(client: Client) -> None:
    elsewhere: list[float] = []

    def sleeps(a: Array, b: Array) -> Array:
        if not elsewhere:
            # What the processor does for this process while it sleeps is done by other threads.
            before = time.process_time()
            time.sleep(0.5)
            elsewhere.append(time.process_time() - before)
        return a @ b

    sizes = {"M": 64, "N": 64, "K": 4096}
    results = client.fuzz_op_client_side("matmul", sleeps, 9, seed=1, sizes=sizes, budget=1 << 30)
    assert results.all_passed, str(results)
    assert elsewhere[0] > 0.02


def test_two_threads_share_a_client(client: Client) -> None:
    found: dict[str, FuzzResults] = {}
    barrier = threading.Barrier(2)

    def work(op: str, function: Any) -> None:
        barrier.wait()
        found[op] = client.fuzz_op_client_side(op, function, 300, seed=5)

    threads = [
        threading.Thread(target=work, args=arguments)
        for arguments in (("relu", relu), ("softmax", padded_softmax))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found["relu"].all_passed and found["relu"].total == 300
    assert found["softmax"].failed > 100 and found["softmax"].total == 300
    assert found["relu"].run != found["softmax"].run
    alone = client.fuzz_op_client_side("softmax", padded_softmax, 300, seed=5)
    assert alone.failed == found["softmax"].failed
    assert [failure.seed for failure in alone.failures] == [
        failure.seed for failure in found["softmax"].failures
    ]
    assert len(client.list_results("relu", limit=1000)) == 300
    assert len(client.list_results("softmax", limit=1000)) == 600
