"""What groups committed is asked for by a process that may end without ending ours."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mm2slo_kafka.errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.group_offsets import GroupOffsetsReader
from mm2slo_kafka.request_counts import RequestCounts
from mm2slo_lab.ports import free_ports
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_kafka.group_offsets import GroupOffsets

_LONG = 60.0
_SHORT = 0.3


@pytest.fixture
def reader() -> Iterator[GroupOffsetsReader]:
    """Of a cluster that does not answer: each reading takes its whole timeout."""
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
    """A reading of two groups whose process gets that signal."""
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read, ["app", "jobs"], max_in_flight=2, timeout=_LONG)
        wait_for(lambda: reader.pid is not None, "the process that asks")
        pid = reader.pid
        assert pid is not None
        assert pid != os.getpid()
        os.kill(pid, number)
        return {group: problem(each) for group, each in reading.result(_LONG).items()}


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_an_end_by_a_broken_connection_is_told_for_each_group(
    reader: GroupOffsetsReader, number: signal.Signals
) -> None:
    found = read_until_signalled(reader, number)
    assert {group: each.kind for group, each in found.items()} == {
        "app": ErrorKind.UNREACHABLE,
        "jobs": ErrorKind.UNREACHABLE,
    }
    assert f"ended by {number.name}, and is started again" in str(found["app"])
    assert "reading committed offsets of group 'app' on cluster eu failed" in str(found["app"])


def test_an_end_by_another_reason_is_not_the_cluster_s(reader: GroupOffsetsReader) -> None:
    found = read_until_signalled(reader, signal.SIGTERM)
    assert {each.kind for each in found.values()} == {ErrorKind.OTHER}


def test_the_reading_after_it_has_a_process_again(reader: GroupOffsetsReader) -> None:
    read_until_signalled(reader, signal.SIGABRT)
    assert reader.pid is None
    found = reader.read(["app"], max_in_flight=1, timeout=_SHORT)
    # The cluster's own answer, not the end of a process.
    assert problem(found["app"]).kind in {ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT}
    assert "process" not in str(found["app"])


def test_a_reading_that_nothing_answers_ends_its_process(reader: GroupOffsetsReader) -> None:
    reader.read(["app"], max_in_flight=1, timeout=_SHORT)
    assert reader.pid is None


def test_a_silent_process_is_given_up(
    reader: GroupOffsetsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_kafka.group_offsets.reader._GRACE_SECONDS", 0.1)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read, ["app"], max_in_flight=1, timeout=2.0)
        wait_for(lambda: reader.pid is not None, "the process that asks")
        pid = reader.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        found = problem(reading.result(_LONG)["app"])
    assert found.kind is ErrorKind.TIMEOUT
    assert "the process that asks for them is silent" in str(found)
    assert reader.pid is None


def test_closing_ends_a_reading_under_way(reader: GroupOffsetsReader) -> None:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read, ["app"], max_in_flight=1, timeout=_LONG)
        wait_for(lambda: reader.pid is not None, "the process that asks")
        reader.close()
        assert problem(reading.result(_LONG)["app"]).kind is ErrorKind.OTHER


def test_what_cannot_be_configured_is_told_with_the_reason() -> None:
    reader = GroupOffsetsReader("eu", {"bootstrap.servers": "x:1", "no.such": "1"}, RequestCounts())
    found = problem(reader.read(["app"], max_in_flight=1, timeout=_SHORT)["app"])
    assert found.kind is ErrorKind.OTHER
    assert 'No such configuration property: "no.such"' in str(found)


def test_without_groups_there_is_no_process(reader: GroupOffsetsReader) -> None:
    assert reader.read([], max_in_flight=1, timeout=_SHORT) == {}
    assert reader.pid is None
