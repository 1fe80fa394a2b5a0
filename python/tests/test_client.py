"""The client with a real daemon."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import socket as sockets
import threading
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from framework_packages import require

import gpuemu.client
from gpuemu.client import Client, GpuemuClient
from gpuemu.errors import ClientError, ConnectionError, ValidationError
from gpuemu.results import JobStatus, TestCase, ValidationResult

pytest_plugins = ["daemon_fixtures"]

NUMBERS = np.linspace(-1, 1, 35, dtype=np.float32).reshape(5, 7)


def softmax(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = array.astype(np.float64)
    with np.errstate(invalid="ignore"):
        powers = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return (powers / powers.sum(axis=-1, keepdims=True)).astype(array.dtype)


def verdict(client: Client, **changes: Any) -> dict[str, Any]:
    """Return a verdict as another one is written, under another name."""
    result = client.validate_op("relu", {"input": NUMBERS}, np.maximum(NUMBERS, 0) + 1)
    return {**result.to_json(), "op": "my_op", "replay": "python check.py", **changes}


def change(project: Path, before: str, after: str) -> str:
    """Change the kernels of a project, and return what they were."""
    file = project / "kernels.py"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    return text


# Starting, stopping, finding.


def test_the_daemon_is_started_when_it_is_needed_and_the_log_says_so(
    own_home: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="gpuemu"), Client(project=project) as client:
        pong = client.ping()
        assert (pong.version, pong["protocol_version"]) == (gpuemu._native.VERSION, 1)
        status = client.status()
        assert [record.message for record in caplog.records] == [f"started the daemon (process {status.pid})"]
        assert Path(status.home) == own_home.resolve()
        with Client(project=project, auto_start=False) as other:
            assert other.status().pid == status.pid
    assert len(caplog.records) == 1


def test_a_daemon_that_was_killed_is_started_again(own_home: Path, project: Path) -> None:
    with Client(project=project) as client:
        first = client.status().pid
        assert client.validate_op("relu", {"input": NUMBERS}, np.maximum(NUMBERS, 0)).passed
        os.kill(first, signal.SIGKILL)
        wait_for_end(first)
        second = client.status().pid
        assert second != first
        assert [result.op for result in client.list_results()] == ["relu"]
        client.shutdown()
        client.shutdown()
        assert client.status().pid != second


def wait_for_end(process: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail(f"process {process} did not end, or nobody waited for it")


def test_without_a_daemon_and_its_program_the_error_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUEMU_HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("GPUEMU_DAEMON", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / name))
    monkeypatch.setenv("PATH", str(tmp_path))
    with Client() as client, pytest.raises(ConnectionError) as caught:
        client.ping()
    assert isinstance(caught.value, OSError)
    assert (caught.value.code, caught.value.message.split()[:3]) == (
        "NotRunning",
        ["no", "daemon", "listens"],
    )
    text = str(caught.value)
    for part in (str(tmp_path / "bin" / "gpuemu-daemon"), str(tmp_path / "scripts"), "PATH", "GPUEMU_DAEMON"):
        assert part in text
    assert "install gpuemu again" in text
    monkeypatch.setenv("GPUEMU_DAEMON", str(tmp_path / "none"))
    with Client() as client, pytest.raises(ConnectionError, match="set GPUEMU_DAEMON") as caught:
        client.ping()
    assert caught.value.code == "NotStarted"
    with Client(auto_start=False) as client, pytest.raises(ConnectionError, match="gpuemu daemon start"):
        client.ping()


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(ConnectionError("no", code="Broken", hint="try")))
    assert (type(error), error.code, error.hint, str(error)) == (
        ConnectionError,
        "Broken",
        "try",
        "no\nhint: try",
    )


def test_a_daemon_of_another_version_is_named_with_both_versions(tmp_path: Path) -> None:
    pynng = require("pynng")
    address = tmp_path / "other.sock"
    with pynng.Rep0(listen=f"ipc://{address}", recv_timeout=20_000) as server:

        def answer() -> None:
            server.recv()
            server.send(b'{"type":"Pong","version":"9.8.7","protocol_version":99,"uptime_seconds":1}')

        thread = threading.Thread(target=answer)
        thread.start()
        with Client(socket=address) as client, pytest.raises(ConnectionError) as caught:
            client.ping()
        thread.join()
        # Nor is one that cannot be talked to taken for one that has ended.
        thread = threading.Thread(target=answer)
        thread.start()
        with Client(socket=address) as client, pytest.raises(ConnectionError, match="protocol 99"):
            client.shutdown()
        thread.join()
    assert caught.value.code == "VersionMismatch"
    for part in ("9.8.7", "protocol 99", "protocol 1", "gpuemu daemon stop"):
        assert part in str(caught.value)


def test_a_daemon_that_does_not_answer_is_given_up_on(tmp_path: Path) -> None:
    address = str(tmp_path / "silent.sock")
    with sockets.socket(sockets.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        with Client(socket=address, timeout=0.3) as client:
            start = time.monotonic()
            with pytest.raises(ConnectionError, match=r"did not answer within 0\.3 s") as caught:
                client.ping()
        assert caught.value.code == "TimedOut" and time.monotonic() - start < 5
    with pytest.raises(ValueError, match=r"timeout is -1;"):
        Client(socket=address, timeout=-1.0)


def test_a_closed_client_refuses(daemon_home: Path) -> None:
    client = GpuemuClient()
    client.close()
    with pytest.raises(ClientError, match="closed"):
        client.ping()


# Threads, forks, interrupts.


def test_a_slow_request_does_not_delay_the_ping_of_another_thread(relu_client: Client, project: Path) -> None:
    change(project, "return", "time.sleep(3)\n    return")
    ended: list[Any] = []

    def work() -> None:
        fields = {"op_name": "relu", "seed": "1", "project": relu_client.project}
        ended.append(relu_client._connection.ask("Reproduce", fields))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.5)
    for _ in range(20):
        start = time.monotonic()
        relu_client.ping()
        assert time.monotonic() - start < 1
    assert thread.is_alive() and not ended
    thread.join()
    assert ended[0].passed


def test_many_threads_share_a_client(client: Client) -> None:
    outcomes: list[str] = []

    def work(number: int) -> None:
        for size in (10, 100_000):
            array = np.full((size,), number, np.float32)
            for wrong in (0, 1):
                result = client.validate_op("relu", {"input": array}, array + np.float32(wrong))
                outcomes.append(f"{wrong}:{result.outcome}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(outcomes)) == ["0:passed", "1:failed"] and len(outcomes) == 24


def _in_fork(client: Client, results: Any) -> None:
    array = np.ones((200_000,), np.float32)
    results.put((client.status().pid, client.validate_op("relu", {"input": array}, array).passed))


def test_a_fork_opens_its_own_connection_and_segment(client: Client) -> None:
    array = np.ones((200_000,), np.float32)
    assert client.validate_op("relu", {"input": array}, array).passed
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_in_fork, args=(client, results))
    child.start()
    process, passed = results.get(timeout=60)
    child.join()
    assert (process, passed, child.exitcode) == (client.status().pid, True, 0)
    assert client.validate_op("relu", {"input": array}, array).passed


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_cancels_the_job_and_the_client_goes_on(relu_client: Client) -> None:
    timer = threading.Timer(0.7, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        relu_client.fuzz_op("relu", seconds=300)
    timer.join()
    newest = relu_client.list_jobs()[-1]
    assert relu_client.job_status(newest, wait=10).state == "cancelled"


# Tensors.


def test_cases_come_with_their_strides_and_dtypes_and_go_back(client: Client) -> None:
    settings: dict[str, Any] = {"dtypes": ["bfloat16", "float16"], "max_shape": [64]}
    cases = client.get_test_batch("softmax", count=60, seed=3, **settings)
    assert {str(case.inputs["input"].dtype) for case in cases} == {"bfloat16", "float16"}
    assert any(not case.inputs["input"].flags.c_contiguous for case in cases)
    for case in cases:
        assert case["inputs"] is case.inputs and "kwargs" in case and case.get("nothing") is None
        again = client.get_test_case("softmax", case.seed, **settings)
        assert again.inputs["input"].strides == case.inputs["input"].strides
        assert again.inputs["input"].tobytes() == case.inputs["input"].tobytes()
    for case in cases[:20]:
        output = softmax(case.inputs["input"])
        result = client.submit_output("softmax", case.inputs, output, case.seed, **case.settings)
        assert result.passed, result.summary
        assert result.seed == case.seed
    by_seed = client.get_test_batch("softmax", seeds=[cases[1].seed], **settings)
    assert by_seed[0].case == cases[1].case
    changed = {"input": cases[0].inputs["input"] + 1}
    with pytest.raises(ClientError, match="is not the one that seed"):
        client.submit_output("softmax", changed, output, cases[0].seed, **settings)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_arrays_of_any_strides_are_judged_as_they_are(client: Client, dtype: Any, large: bool) -> None:
    rows = 2000 if large else 6
    values = np.random.default_rng(1).standard_normal((rows, 40, 2)).astype(dtype)
    views = [
        values,
        values.transpose(2, 0, 1),
        values[::-1, ::2],
        values[:, ::-3, ::-1],
        values[:, :, :1],
        values[:1, :1, :1],
        values[rows // 2],
        values[:0],
        np.broadcast_to(values[:, :1], values.shape),
        values[0, 0, 0:1].reshape(()),
    ]
    for view in views:
        expected = np.where(view > 0, view, np.zeros((), dtype))
        right = client.validate_op("relu", {"input": view}, expected)
        assert right.passed or view.size == 0, right.summary
        if view.size:
            assert client.validate_op("relu", {"input": view}, np.where(view > 0, view, view)).passed is bool(
                (view >= 0).all()
            )


def test_bytes_in_another_order_and_read_only_arrays_are_taken(client: Client) -> None:
    swapped = NUMBERS.astype(">f4")
    fixed = NUMBERS.copy()
    fixed.flags.writeable = False
    for array in (swapped, fixed):
        assert client.validate_op("relu", {"input": array}, np.maximum(array, 0)).passed


def test_without_room_in_shared_memory_tensors_go_over_the_socket(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def clear(self) -> None: ...
        def close(self) -> None: ...
        def share(self, array: Any) -> Any:
            raise OSError(28, "no space left on device")

    monkeypatch.setattr("gpuemu._client.connection.SharedSegment", Full)
    array = np.ones((500_000,), np.float32)
    assert client.validate_op("relu", {"input": array}, array).passed
    assert not client.validate_op("relu", {"input": array}, array + 1).passed


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0], "output is a list; pass an array"),
        (1.0, "output is a float; pass an array"),
        (None, "output is None; pass an array"),
        (np.array(["a"]), "output has dtype str32"),
        (np.array([1j]), "output has dtype complex128"),
    ],
)
def test_what_is_no_array_is_refused_by_its_type(client: Client, value: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        client.validate_op("relu", {"input": NUMBERS}, value)


@pytest.mark.parametrize("scalar", [np.float32, np.float64, np.float16])
def test_a_scalar_of_numpy_is_an_array_without_dims(client: Client, scalar: type[np.floating[Any]]) -> None:
    ones = {"input": np.ones(5, scalar)}
    assert client.validate_op("sum", ones, scalar(5)).passed
    assert not client.validate_op("sum", ones, scalar(6)).passed


def test_inputs_are_given_by_name(client: Client) -> None:
    with pytest.raises(TypeError, match=r"inputs is a ndarray; pass a dict of arrays by name"):
        client.validate_op("relu", NUMBERS, NUMBERS)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"inputs\['input'\] is a list"):
        client.validate_op("relu", {"input": [1]}, NUMBERS)


# Verdicts.


def test_verdicts_are_dataclasses_that_index_like_dicts(client: Client) -> None:
    right = client.validate_op("relu", {"input": NUMBERS}, np.maximum(NUMBERS, 0), raise_on_failure=True)
    assert right.passed and right.outcome == "passed" and right.elements.compared == 35
    wrong = client.validate_op("relu", {"input": NUMBERS}, NUMBERS)
    assert isinstance(wrong, ValidationResult) and not wrong["passed"]
    finding = wrong.failures[0]
    assert (finding.check, finding["tensor"], finding.mismatched) == ("value", "out", 17)
    assert finding.worst is not None and finding.worst.expected == 0.0
    assert isinstance(wrong.seed, int) and wrong.shapes == [("input", (5, 7))]
    assert ValidationResult.from_json({**wrong.to_json(), "of_a_later_version": 1}) == wrong
    assert set(wrong.keys()) == set(dict(wrong))  # type: ignore[call-overload]
    with pytest.raises(ValidationError, match="relu: failed") as caught:
        client.validate_op("relu", {"input": NUMBERS}, NUMBERS, raise_on_failure=True)
    assert caught.value.result.failures == wrong.failures
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.result == caught.value.result and str(again) == str(caught.value)


def test_numbers_that_json_has_no_words_for_are_floats(client: Client) -> None:
    output = np.maximum(NUMBERS, 0)
    output[0, 0] = np.nan
    result = client.validate_op("relu", {"input": NUMBERS}, output)
    assert result.failures[0].check == "unexpected_nan"
    worst = result.failures[0].worst
    assert worst is not None and np.isnan(worst.actual)


def test_wrong_requests_are_errors_with_code_and_hint(client: Client) -> None:
    with pytest.raises(ClientError, match="there is no op 'rellu'") as caught:
        client.validate_op("rellu", {"input": NUMBERS}, NUMBERS)
    assert (caught.value.code, caught.value.hint) == ("OpNotFound", "did you mean 'relu'?")
    with pytest.raises(ClientError, match="op 'matmul'") as caught:
        client.validate_op("matmul", {"a": NUMBERS, "b": NUMBERS}, NUMBERS)
    assert caught.value.code == "InvalidRequest"
    with pytest.raises(ClientError, match="has no parameter 'epsilon'"):
        client.validate_op("relu", {"input": NUMBERS}, NUMBERS, kwargs={"epsilon": np.float32(1)})
    for output, check in ((NUMBERS[:2], "shape"), (np.maximum(NUMBERS, 0).astype(np.float64), "dtype")):
        result = client.validate_op("relu", {"input": NUMBERS}, output)
        assert [finding.check for finding in result.failures] == [check]
    with pytest.raises(ClientError, match="no stored result of this project has seed 5") as caught:
        client.get_result(5)
    assert caught.value.code == "NotFound"
    with pytest.raises(TypeError, match="iteration"):
        client.get_test_case("relu", iteration=1)
    with pytest.raises(ValueError, match="unknown dtype 'float33'"):
        client.get_test_batch("relu", count=1, dtypes="float33")
    with pytest.raises(ClientError, match="unknown value strategy 'odd'"):
        client.get_test_batch("relu", count=1, value_distribution="odd")


def test_parameters_reach_the_op(client: Client) -> None:
    wide = NUMBERS.astype(np.float64)
    scale = 1 / np.sqrt((wide**2).mean(axis=-1, keepdims=True) + 0.5)
    weight = np.ones((7,), np.float32)
    output = (wide * scale).astype(np.float32)
    inputs = {"input": NUMBERS, "weight": weight}
    assert client.validate_op("rmsnorm", inputs, output, kwargs={"eps": np.float64(0.5)}).passed
    assert not client.validate_op("rmsnorm", inputs, output).passed


# What is stored.


def test_failures_are_listed_with_their_inputs(client: Client) -> None:
    strided = NUMBERS.T
    wrong = client.validate_op("relu", {"input": strided}, strided)
    client.validate_op("relu", {"input": NUMBERS}, np.maximum(NUMBERS, 0))
    assert [result.outcome for result in client.list_results(limit=2)] == ["passed", "failed"]
    assert [result.seed for result in client.list_failures("relu")] == [wrong.seed]
    assert client.list_failures("softmax") == [] and client.list_results(since_hours=1)
    kept = client.get_result(wrong.seed).inputs
    assert kept is not None and kept["input"].strides == strided.strides
    np.testing.assert_array_equal(kept["input"], strided)


def test_verdicts_of_this_process_are_recorded(client: Client) -> None:
    failed = verdict(client, seed="12", inputs={"x": NUMBERS.T})
    settings = {"max_shape": [9]}
    run = client.record_results("my_op", [failed], base_seed=2**64 - 1, settings=settings)
    passed = ValidationResult.from_json(
        {**failed, "outcome": "passed", "passed": True, "failures": [], "seed": 13}
    )
    assert client.record_results("my_op", [passed], base_seed=2**64 - 1, run=run) == run
    first, second = client.list_results("my_op")
    assert (first.seed, second.seed, first.run, second.run) == (13, 12, run, run)
    kept = client.get_result(12, "my_op")
    assert kept.client_side and kept.replay == "python check.py" and kept.settings == settings
    assert kept.inputs is not None
    np.testing.assert_array_equal(kept.inputs["x"], NUMBERS.T)
    skipped = [item for item in client.replay_failures() if item.result.op == "my_op"]
    assert [(item.status, item.result.message) for item in skipped] == [
        ("SKIPPED", "runs in Python: python check.py")
    ]
    with pytest.raises(ClientError, match="runs in Python") as caught:
        client.reproduce(12)
    assert caught.value.hint == "run it where it was found: python check.py"


def test_verdicts_that_contradict_themselves_are_refused(client: Client) -> None:
    for changes, words in (
        ({"op": "other"}, "'op' is 'other', but 'op_name' is 'my_op'"),
        ({"passed": True}, "'passed' is true, but 'outcome' is 'failed'"),
        ({"failures": []}, "'failures' is empty"),
    ):
        with pytest.raises(ClientError, match=words) as caught:
            client.record_results("my_op", [verdict(client, **changes)], base_seed=1)
        assert caught.value.code == "InvalidRequest"
    with pytest.raises(ClientError, match="this project has no run 1") as caught:
        client.record_results("my_op", [verdict(client)], base_seed=1, run=1)
    assert caught.value.code == "NotFound"
    assert client.list_results("my_op") == []


# A project that the daemon runs.


def test_a_project_is_run_shrunk_compared_and_inspected(relu_client: Client, project: Path) -> None:
    assert [op.name for op in relu_client.list_ops()] == ["relu"]
    seen: list[JobStatus] = []
    settings: dict[str, Any] = {"seed": 1, "dtypes": [np.float32]}
    report = relu_client.fuzz_op("relu", 30, progress=seen.append, **settings)
    assert report.passed and report.ops[0].cases == 30 and report.seed == 1
    assert seen[-1].state == "done" and seen[-1].total == 30 and seen[-1].result == report
    stored = relu_client.store_baseline("v1")
    assert (stored.tag, stored.cases, stored.failing) == ("v1", 30, 0)
    assert [baseline.tag for baseline in relu_client.list_baselines()] == ["v1"]
    assert relu_client.compare_baseline("v1").ops[0].status == "same"
    right = change(project, "(input, 0)", "(input, 0) + (input.size % 2 == 1)")
    comparison = relu_client.compare_baseline("v1")
    assert comparison.fails and comparison.ops[0].status == "regressed"
    broken = relu_client.fuzz_op("relu", 60, fail_fast=True, **settings)
    assert not broken.passed and broken.ops[0].status == "failed"
    failure = broken.ops[0].failures[0]
    assert relu_client.reproduce(failure.seed).failures == failure.failures
    minimized = relu_client.minimize(failure.seed)
    assert minimized.inputs["input"].size % 2 == 1 and minimized.runs > 0
    inspection = relu_client.inspect(failure.seed)
    assert inspection.outputs["out"].shape == inspection.expected["out"].shape
    assert inspection.expected["out"].dtype == np.float64 and inspection.output_dtypes == {"out": "float32"}
    assert {item.status for item in relu_client.replay_failures()} == {"FAILED"}
    (project / "kernels.py").write_text(right)
    assert {item.status for item in relu_client.replay_failures()} == {"FIXED"}
    relu_client.delete_baseline("v1")
    with pytest.raises(ClientError) as caught:
        relu_client.compare_baseline("v1")
    assert caught.value.code == "BaselineNotFound"


def test_a_changed_configuration_is_read_again(relu_client: Client, project: Path) -> None:
    assert len(relu_client.list_ops()) == 1
    config = project / "gpuemu.toml"
    config.write_text(
        config.read_text() + '\n[[ops]]\nname = "other"\nsignature = "x[N] -> out[N]"\nmodule = "kernels"\n'
    )
    with pytest.raises(ClientError) as caught:
        relu_client.list_ops()
    assert caught.value.code == "ConfigError"
    config.write_text("[project\n")
    with pytest.raises(ClientError, match=r"gpuemu\.toml") as caught:
        relu_client.list_ops()
    assert caught.value.code == "ConfigError"


def test_a_folder_below_the_configuration_is_of_the_project(relu_client: Client, project: Path) -> None:
    below = project / "a" / "b"
    below.mkdir(parents=True)
    with Client(project=below) as client:
        assert client.project["root"] == str(project) and [op.name for op in client.list_ops()] == ["relu"]
    with Client(project=project / "gpuemu.toml") as client:
        assert client.project["root"] == str(project)
    with Client(project=project / "none") as client, pytest.raises(ClientError):
        client.list_ops()


def test_jobs_are_submitted_watched_and_cancelled(relu_client: Client, project: Path) -> None:
    change(project, "return", "time.sleep(0.05)\n    return")
    job = relu_client.submit_job("FuzzOp", op_name="relu", config={"iterations": 100_000})
    assert (job.state, job.kind, job.result) == ("running", "FuzzOp", None)
    with pytest.raises(TimeoutError, match=f"job {job.job} still runs after 0.2 s"):
        relu_client.wait_job(job, timeout=0.2)
    assert job.job in [known.job for known in relu_client.list_jobs()]
    relu_client.cancel_job(job)
    report = relu_client.wait_job(job.job)
    assert report.ops[0].status == "unfinished" and not report.passed
    assert relu_client.job_status(job).state == "cancelled"

    def enough(status: JobStatus) -> None:
        if status.done > 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        relu_client.fuzz_op("relu", 100_000, progress=enough)
    assert relu_client.job_status(relu_client.list_jobs()[-1], wait=10).state == "cancelled"
    with pytest.raises(ClientError, match="there is no job 0"):
        relu_client.job_status(0)
    with pytest.raises(ClientError, match="there is no op 'rellu'"):
        relu_client.fuzz_op("rellu")


def test_a_case_is_not_taken_for_a_test() -> None:
    assert TestCase.__test__ is False
