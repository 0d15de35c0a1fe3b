"""The timeline is read backwards, as far as unreplicated records need it."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import pytest

from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.timeline import timeline_history
from mm2slo_exporter.timeline.timeline_history import HistoryChunk, TimelineHistory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading
from mm2slo_kafka.tailed_topic import TailRecord

FLOW, PARTITION = Flow("us", "eu"), TopicPartition("timeline", 0)
NOW = 100_000.0


def record(at: float, **changes: Any) -> WatermarkRecord:
    fields: dict[str, Any] = {
        "flow": FLOW,
        "side": Side.SOURCE,
        "topic": "orders",
        "topic_id": "id",
        "isolation": "read_uncommitted",
        "times": PollTimes(at, at),
        "partitions": (0,),
        "ends": (int(at),),
    }
    return WatermarkRecord(**fields | changes)


@dataclass
class Timeline:
    """A fake cluster with a timeline of *records*, one an offset, and counts of what is read."""

    records: list[WatermarkRecord]
    removed: int = 0
    failures: list[ErrorKind] = field(default_factory=list)
    alias: str = "eu"
    reads: int = 0
    exists: bool = True

    def topic_exists(self, _topic: str, _timeout: float) -> bool:
        return self.exists

    def _reading(self, offset: int) -> OffsetReading:
        if not self.exists:
            # As librdkafka answers for a missing topic.
            return OffsetReading({}, {PARTITION: ErrorKind.UNREACHABLE}, 0.0, 0.0)
        if self.failures:
            return OffsetReading({}, {PARTITION: self.failures.pop(0)}, 0.0, 0.0)
        return OffsetReading({PARTITION: offset}, {}, 0.0, 0.0)

    def start_offsets(self, _partitions: object) -> OffsetReading:
        return self._reading(self.removed)

    def offsets_at(self, _partitions: object, at: float) -> OffsetReading:
        older = sum(each.times.answered_at < at for each in self.records)
        return self._reading(max(self.removed, older))

    def read_records(self, start: int) -> Generator[TailRecord]:
        self.reads += 1
        for offset, found in enumerate(self.records[start:], start):
            yield TailRecord(0, offset, None, found.encode_key(), found.encode_value(), None)


def read(
    monkeypatch: pytest.MonkeyPatch, timeline: Timeline, wants: Sequence[set[str]]
) -> list[HistoryChunk]:
    """The chunks read if orders may have a backlog, and each is answered with one of *wants*."""
    monkeypatch.setattr(
        timeline_history, "read_records", lambda _client, _at, start: timeline.read_records(start)
    )
    monkeypatch.setattr(timeline_history, "_RETRY_SECONDS", 0.0)
    history = TimelineHistory(
        FLOW, cast("ClusterClient", timeline), PARTITION.topic, CollectionHealth(), until=NOW
    )
    for topics in wants:
        history.proceed(topics)
    history.start({"orders"})
    history.join()
    chunks = []
    while (chunk := history.take()) is not None:
        chunks.append(chunk)
    return chunks


def test_history_is_read_from_the_newest_minute_on_until_no_topic_needs_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timeline = Timeline([record(NOW - age) for age in range(300, 0, -5)])
    newest, older = read(monkeypatch, timeline, [{"orders"}, set()])
    assert [each.ends[0] for each in newest.records["orders"]] == list(
        range(int(NOW) - 5, int(NOW) - 71, -5)
    )
    assert older.oldest == NOW - 140.0
    assert older.records["orders"][0].ends == (int(NOW) - 75,)
    assert timeline.reads == 2


def test_topic_without_a_backlog_keeps_the_newest_record(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = [record(NOW - age, topic=topic) for age in (15, 10, 5) for topic in ("orders", "idle")]
    (chunk,) = read(monkeypatch, Timeline(polls), [set()])
    assert {
        topic: [each.times.requested_at for each in found] for topic, found in chunk.records.items()
    } == {
        "orders": [NOW - 5, NOW - 10, NOW - 15],
        "idle": [NOW - 5],
    }


def test_chunks_are_further_apart_the_older_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    day = Timeline([record(NOW - age) for age in range(86_400, 0, -60)])
    chunks = read(monkeypatch, day, [{"orders"}] * 100)
    ages = [NOW - each.oldest for each in chunks if each.oldest is not None]
    assert len(ages) < 40
    assert 86_400 >= ages[-1] > 86_400 / 1.2 - 71
    assert all(later < 1.2 * earlier + 71 for earlier, later in pairwise(ages))


def test_other_flows_sides_and_topics_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    at = NOW - 80.0
    timeline = Timeline(
        [
            record(at - 500.0),
            record(at, topic="at-rest"),
            record(at, flow=Flow("ap", "eu")),
            record(at, side=Side.TARGET),
            record(at),
        ]
    )
    _newest, older = read(monkeypatch, timeline, [{"orders"}, set()])
    assert list(older.records) == ["orders"]


def test_answer_is_awaited_after_any_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[ErrorKind] = [each for each in ErrorKind if each != "authorization"]
    timeline = Timeline([record(NOW - 5)], failures=failures)
    (chunk,) = read(monkeypatch, timeline, [set()])
    assert len(chunk.records["orders"]) == 1
    # No poll of the rest of the minute is known.
    assert chunk.oldest == NOW - 5


def test_timeline_that_may_not_be_described_ends_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timeline = Timeline([], failures=[ErrorKind.AUTHORIZATION] * 3)
    assert read(monkeypatch, timeline, [{"orders"}]) == []


def test_missing_timeline_ends_the_history_without_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (chunk,) = read(monkeypatch, Timeline([], exists=False), [{"orders"}])
    assert not chunk.records
    assert chunk.oldest is None


def test_problem_of_reading_records_ends_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = Timeline([record(NOW - 5)])

    def refuse(_start: int) -> Generator[TailRecord]:
        raise KafkaOperationError(
            ErrorKind.AUTHORIZATION, cluster="eu", operation="reading timeline", detail="x"
        )

    monkeypatch.setattr(timeline, "read_records", refuse)
    assert read(monkeypatch, timeline, [{"orders"}]) == []
