"""Committed offsets are read by a worker process, whose crash does not affect the parent."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.fork_server import FORK_SERVER
from mm2slo_kafka.group_worker import GroupRead, GroupWorker
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_lab.managed_process import free_ports, wait_for

_LONG = 60.0
_SHORT = 0.3


def make_worker(properties: dict[str, str]) -> GroupWorker:
    return GroupWorker(properties, HandleFactory("eu", properties))


@pytest.fixture
def worker() -> Iterator[GroupWorker]:
    """A worker of an unreachable cluster: each read takes its whole timeout."""
    (port,) = free_ports(1)
    worker = make_worker({"bootstrap.servers": f"127.0.0.1:{port}"})
    yield worker
    worker.close()
    assert worker.pid is None


def problem(read: GroupRead[Any]) -> KafkaOperationError:
    assert isinstance(read.found, KafkaOperationError)
    return read.found


def read_until_signalled(
    worker: GroupWorker, number: signal.Signals
) -> dict[str, KafkaOperationError]:
    """Read two groups while the worker gets a signal."""
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(worker.offsets, ["app", "jobs"], within=_LONG, timeout=_LONG)
        wait_for(lambda: worker.pid is not None, "the worker process")
        pid = worker.pid
        assert pid is not None
        assert pid != os.getpid()
        os.kill(pid, number)
        return {group: problem(each) for group, each in reading.result(_LONG).items()}


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_worker_crash_is_reported_as_unreachable_for_each_group(
    worker: GroupWorker, number: signal.Signals
) -> None:
    found = read_until_signalled(worker, number)
    assert {group: each.kind for group, each in found.items()} == {
        "app": ErrorKind.UNREACHABLE,
        "jobs": ErrorKind.UNREACHABLE,
    }
    assert f"ended with {number.name} and is restarted" in str(found["app"])
    assert "reading committed offsets of group 'app' on cluster eu failed" in str(found["app"])


def test_worker_crash_leaves_groups_that_were_not_requested_to_the_next_read(
    worker: GroupWorker,
) -> None:
    groups = [f"app-{number:02}" for number in range(40)]
    failed = []
    for _ in range(2):
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(worker.offsets, groups, within=_LONG, timeout=_LONG)
            wait_for(lambda: worker.pid is not None, "the worker process")
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGABRT)
            failed.append(list(reading.result(_LONG)))
    # At most 16 requests are in flight at first, and one after a crash.
    assert failed == [groups[:16], groups[:1]]


def test_worker_ended_by_sigterm_is_reported_as_other(worker: GroupWorker) -> None:
    found = read_until_signalled(worker, signal.SIGTERM)
    assert {each.kind for each in found.values()} == {ErrorKind.OTHER}


def test_read_after_worker_crash_starts_new_worker(worker: GroupWorker) -> None:
    read_until_signalled(worker, signal.SIGABRT)
    assert worker.pid is None
    found = worker.offsets(["app"], within=_SHORT, timeout=_SHORT)
    # An error of the cluster, not of the worker.
    assert problem(found["app"]).kind in {ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT}
    assert "process" not in str(found["app"])


def test_read_without_answer_ends_worker(worker: GroupWorker) -> None:
    worker.offsets(["app"], within=_SHORT, timeout=_SHORT)
    assert worker.pid is None


def test_unresponsive_worker_is_killed_and_reported_as_timeout(
    worker: GroupWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_kafka.group_worker._GRACE_SECONDS", 0.1)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(worker.offsets, ["app"], within=1.0, timeout=2.0)
        wait_for(lambda: worker.pid is not None, "the worker process")
        pid = worker.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        found = problem(reading.result(_LONG)["app"])
    assert found.kind is ErrorKind.TIMEOUT
    assert "the worker process does not respond" in str(found)
    assert worker.pid is None


def test_close_ends_read_in_progress(worker: GroupWorker) -> None:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(worker.offsets, ["app"], within=_LONG, timeout=_LONG)
        wait_for(lambda: worker.pid is not None, "the worker process")
        worker.close()
        assert problem(reading.result(_LONG)["app"]).kind is ErrorKind.OTHER


def test_invalid_property_is_reported_by_name() -> None:
    worker = make_worker({"bootstrap.servers": "x:1", "no.such": "1"})
    found = problem(worker.offsets(["app"], within=_LONG, timeout=_LONG)["app"])
    assert found.kind is ErrorKind.OTHER
    assert 'No such configuration property: "no.such"' in str(found)


def test_worker_that_cannot_be_started_is_reported_as_other(
    worker: GroupWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError("no more processes")

    with monkeypatch.context() as patched:
        patched.setattr(FORK_SERVER, "start", fail)
        found = problem(worker.offsets(["app"], within=_SHORT, timeout=_SHORT)["app"])
    assert found.kind is ErrorKind.OTHER
    assert "the worker process could not be started: no more processes" in str(found)
    found = problem(worker.offsets(["app"], within=_SHORT, timeout=_SHORT)["app"])
    assert "process" not in str(found)


def test_read_after_end_of_fork_server_starts_new_one(worker: GroupWorker) -> None:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(worker.offsets, ["app"], within=_LONG, timeout=_LONG)
        wait_for(lambda: worker.pid is not None, "the worker process")
        assert FORK_SERVER.pid is not None
        os.kill(FORK_SERVER.pid, signal.SIGKILL)
        found = problem(reading.result(_LONG)["app"])
    assert found.kind is ErrorKind.OTHER
    assert "the worker process ended with its fork server and is restarted" in str(found)
    found = problem(worker.offsets(["app"], within=_SHORT, timeout=_SHORT)["app"])
    assert "process" not in str(found)


def test_read_without_groups_starts_no_worker(worker: GroupWorker) -> None:
    assert worker.offsets([], within=_SHORT, timeout=_SHORT) == {}
    assert worker.pid is None
