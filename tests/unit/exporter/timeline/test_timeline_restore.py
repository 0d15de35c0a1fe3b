"""The timeline of an earlier process is restored: source side of one flow, in order."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mm2slo_core.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.timeline import timeline_restore
from mm2slo_exporter.timeline.timeline_restore import RestoredPoll, read_timeline
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import Batch, TailRecord, TailState

if TYPE_CHECKING:
    from mm2slo_kafka.cluster_client import ClusterClient

FLOW = Flow("us", "eu")
TIMES = PollTimes(100.0, 100.5, 95.0, 95.5)


class Tail:
    """Returns one record per poll; caught up or absent at the end."""

    def __init__(
        self, values: list[bytes | None], state: TailState, *_: object, **options: Any
    ) -> None:
        self.values = values
        self.options = options
        self.end = state
        self.state = TailState.STARTING
        self.caught_up = False
        self.closed = False
        MADE.append(self)

    def poll(self, max_records: int, timeout: float) -> Batch:
        del max_records, timeout
        taken = [TailRecord(0, 0, None, b"k", self.values.pop(0), None)] if self.values else []
        if not self.values:
            self.state, self.caught_up = self.end, self.end is TailState.READING
        return Batch(taken, None, None)

    def close(self) -> None:
        self.closed = True


MADE: list[Tail] = []


def record(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "flow": FLOW,
        "side": Side.SOURCE,
        "topic": "orders",
        "topic_id": "id",
        "isolation": "read_uncommitted",
        "times": TIMES,
        "partitions": (0, 2),
        "ends": (10, 20),
    }
    return WatermarkRecord(**fields | changes).encode_value()


def read(
    monkeypatch: pytest.MonkeyPatch,
    *values: bytes | None,
    state: TailState = TailState.READING,
    stopping: threading.Event | None = None,
) -> tuple[list[RestoredPoll], list[str]]:
    monkeypatch.setattr(timeline_restore, "TopicTail", partial(Tail, list(values), state))
    damaged: list[str] = []
    client = cast("ClusterClient", None)
    polls = list(
        read_timeline(
            client, "t", FLOW, stopping or threading.Event(), damaged.append, failed=print
        )
    )
    assert MADE.pop().closed
    return polls, damaged


def test_read_timeline_returns_source_partitions_of_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = read(
        monkeypatch,
        record(),
        record(side=Side.TARGET, topic="us.orders"),
        record(flow=Flow("ap", "eu")),
        record(ends=(11, 20), topic_id=None),
    )
    assert [(each.partition, each.topic_id, each.end) for each in found] == [
        (TopicPartition("orders", 0), "id", 10),
        (TopicPartition("orders", 2), "id", 20),
        (TopicPartition("orders", 0), None, 11),
        (TopicPartition("orders", 2), None, 20),
    ]
    assert {each.times for each in found} == {TIMES}


def test_read_timeline_reports_and_skips_malformed_records(monkeypatch: pytest.MonkeyPatch) -> None:
    found, damaged = read(monkeypatch, b"{", b'{"v":9}', record())
    assert damaged == ["invalid_json", "unknown_version"]
    assert len(found) == 2


@pytest.mark.parametrize("state", [TailState.READING, TailState.ABSENT])
def test_read_timeline_stops_at_end_of_topic(
    monkeypatch: pytest.MonkeyPatch, state: TailState
) -> None:
    assert read(monkeypatch, state=state) == ([], [])


def problem(kind: ErrorKind) -> Batch:
    error = KafkaOperationError(kind, cluster="eu", operation="reading t", detail="x")
    return Batch([], None, error)


def read_batches(monkeypatch: pytest.MonkeyPatch, *batches: Batch) -> tuple[int, list[str]]:
    """The number of polls restored from *batches*, after which the tail has caught up."""
    left = list(batches)
    tail = SimpleNamespace(caught_up=False, state=TailState.STARTING, close=lambda: None)

    def poll(*_: object) -> Batch:
        batch = left.pop(0)
        tail.caught_up = not left
        return batch

    tail.poll = poll
    monkeypatch.setattr(timeline_restore, "TopicTail", lambda *_, **__: tail)
    failed: list[str] = []
    restored = read_timeline(
        cast("ClusterClient", None),
        "t",
        FLOW,
        threading.Event(),
        print,
        failed=lambda error: failed.append(error.kind),
    )
    return len(list(restored)), failed


RECORD = Batch([TailRecord(0, 0, None, b"k", record(), None)], None, None)


def test_read_timeline_waits_for_an_unreachable_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    outage = [problem(ErrorKind.UNREACHABLE), *[problem(ErrorKind.TIMEOUT)] * 2]
    found, failed = read_batches(monkeypatch, *outage, RECORD)
    assert (found, failed) == (2, ["unreachable", "timeout", "timeout"])


def test_read_timeline_without_permission_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    found, failed = read_batches(monkeypatch, problem(ErrorKind.AUTHORIZATION), RECORD)
    assert (found, failed) == (0, ["authorization"])


def test_read_timeline_when_stopping_returns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = threading.Event()
    stopping.set()
    assert read(monkeypatch, record(), stopping=stopping) == ([], [])


def test_read_timeline_starts_one_hour_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mm2slo_exporter.timeline.timeline_restore.time.time", lambda: 10_000.0)
    made: list[dict[str, Any]] = []

    def tail(*_: object, **options: Any) -> Tail:
        made.append(options)
        return Tail([], TailState.READING)

    monkeypatch.setattr(timeline_restore, "TopicTail", tail)
    list(
        read_timeline(
            cast("ClusterClient", None), "t", FLOW, threading.Event(), print, failed=print
        )
    )
    assert made == [{"start": 6_400.0}]
    MADE.clear()
