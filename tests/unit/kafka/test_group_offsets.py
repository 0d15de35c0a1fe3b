"""Committed offsets are read by a worker process, whose crash does not affect the parent."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mm2slo_kafka.group_offsets import GroupOffsetsReader
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.request_counts import RequestCounts
from mm2slo_lab.condition_wait import wait_for
from mm2slo_lab.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_kafka.group_offsets import GroupOffsets

_LONG = 60.0
_SHORT = 0.3


@pytest.fixture
def reader() -> Iterator[GroupOffsetsReader]:
    """A reader of an unreachable cluster: each read takes its whole timeout."""
    (port,) = free_ports(1)
    reader = GroupOffsetsReader("eu", {"bootstrap.servers": f"127.0.0.1:{port}"}, RequestCounts())
    yield reader
    reader.close()
    assert reader.pid is None


def problem(found: GroupOffsets | KafkaOperationError) -> KafkaOperationError:
    assert isinstance(found, KafkaOperationError)
    return found


def read_until_signalled(
    reader: GroupOffsetsReader, number: signal.Signals
) -> dict[str, KafkaOperationError]:
    """Read two groups while the worker gets a signal."""
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read, ["app", "jobs"], max_in_flight=2, timeout=_LONG)
        wait_for(lambda: reader.pid is not None, "the worker process")
        pid = reader.pid
        assert pid is not None
        assert pid != os.getpid()
        os.kill(pid, number)
        return {group: problem(each) for group, each in reading.result(_LONG).items()}


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_worker_crash_is_reported_as_unreachable_for_each_group(
    reader: GroupOffsetsReader, number: signal.Signals
) -> None:
    found = read_until_signalled(reader, number)
    assert {group: each.kind for group, each in found.items()} == {
        "app": ErrorKind.UNREACHABLE,
        "jobs": ErrorKind.UNREACHABLE,
    }
    assert f"ended with {number.name} and is restarted" in str(found["app"])
    assert "reading committed offsets of group 'app' on cluster eu failed" in str(found["app"])


def test_worker_ended_by_sigterm_is_reported_as_other(reader: GroupOffsetsReader) -> None:
    found = read_until_signalled(reader, signal.SIGTERM)
    assert {each.kind for each in found.values()} == {ErrorKind.OTHER}


def test_read_after_worker_crash_starts_new_worker(reader: GroupOffsetsReader) -> None:
    read_until_signalled(reader, signal.SIGABRT)
    assert reader.pid is None
    found = reader.read(["app"], max_in_flight=1, timeout=_SHORT)
    # An error of the cluster, not of the worker.
    assert problem(found["app"]).kind in {ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT}
    assert "process" not in str(found["app"])


def test_read_without_answer_ends_worker(reader: GroupOffsetsReader) -> None:
    reader.read(["app"], max_in_flight=1, timeout=_SHORT)
    assert reader.pid is None


def test_unresponsive_worker_is_killed_and_reported_as_timeout(
    reader: GroupOffsetsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_kafka.group_offsets.group_offsets_reader._GRACE_SECONDS", 0.1)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read, ["app"], max_in_flight=1, timeout=2.0)
        wait_for(lambda: reader.pid is not None, "the worker process")
        pid = reader.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        found = problem(reading.result(_LONG)["app"])
    assert found.kind is ErrorKind.TIMEOUT
    assert "the worker process does not respond" in str(found)
    assert reader.pid is None


def test_close_ends_read_in_progress(reader: GroupOffsetsReader) -> None:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read, ["app"], max_in_flight=1, timeout=_LONG)
        wait_for(lambda: reader.pid is not None, "the worker process")
        reader.close()
        assert problem(reading.result(_LONG)["app"]).kind is ErrorKind.OTHER


def test_invalid_property_is_reported_by_name() -> None:
    reader = GroupOffsetsReader("eu", {"bootstrap.servers": "x:1", "no.such": "1"}, RequestCounts())
    found = problem(reader.read(["app"], max_in_flight=1, timeout=_LONG)["app"])
    assert found.kind is ErrorKind.OTHER
    assert 'No such configuration property: "no.such"' in str(found)


def test_read_without_groups_starts_no_worker(reader: GroupOffsetsReader) -> None:
    assert reader.read([], max_in_flight=1, timeout=_SHORT) == {}
    assert reader.pid is None
