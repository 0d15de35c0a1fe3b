"""Probes of positions that do not advance, and lookups of canaries on a compacted source."""

import threading
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import ProbeSpan, TailProbe
from mm2slo_exporter.readers.probe_reader import ProbeReader, is_answered, tail_probe
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.first_records import FirstRecord, FirstRecords
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading

PARTITION = TopicPartition("orders", 0)


class Source:
    """Has records at the given offsets, with their offset in seconds as timestamp."""

    alias = "us"

    def __init__(self, *records: int) -> None:
        self.records = records
        self.asked: list[tuple[Mapping[TopicPartition, tuple[int, int]], str]] = []
        self.silent: set[TopicPartition] = set()
        self.denied: set[TopicPartition] = set()
        self.down = False
        self.log_start = 0
        self.answered = threading.Event()

    def first_records(
        self, ranges: Mapping[TopicPartition, tuple[int, int]], isolation: str
    ) -> FirstRecords:
        self.asked.append((dict(ranges), isolation))
        if self.down:
            raise KafkaOperationError(
                ErrorKind.TIMEOUT, cluster="us", operation="probing", detail="no"
            )
        found: dict[TopicPartition, FirstRecord | None] = {}
        for here, (start, end) in ranges.items():
            if here not in self.silent | self.denied:
                # Below the log start: the first remaining record, like the real reader.
                low = max(start, self.log_start)
                last = max(end, low + 1)
                offset = next((at for at in self.records if low <= at < last), None)
                found[here] = None if offset is None else first(offset)
        failures = dict.fromkeys(ranges.keys() & self.silent, ErrorKind.TIMEOUT)
        failures |= dict.fromkeys(ranges.keys() & self.denied, ErrorKind.AUTHORIZATION)
        return FirstRecords(found, failures)

    def start_offsets(self, partitions: Sequence[TopicPartition]) -> OffsetReading:
        self.answered.set()
        return OffsetReading(dict.fromkeys(partitions, self.log_start), {}, 0.0, 0.0)


def first(offset: int) -> FirstRecord:
    return FirstRecord(offset, offset * 1000)


def reader(source: Source, health: CollectionHealth | None = None) -> ProbeReader:
    return ProbeReader(
        "us->eu",
        cast("ClusterClient", source),
        "read_committed",
        health or CollectionHealth(),
        every=60.0,
    )


SPANS = [
    (None, ProbeSpan(5, 9), False),
    (TailProbe(5, 9, 7, 7.0), ProbeSpan(5, 9), True),
    (TailProbe(5, 9, 7, 7.0), ProbeSpan(7, 50), True),  # its record is still unreplicated
    (TailProbe(5, 9, 7, 7.0), ProbeSpan(8, 50), False),  # its record was replicated
    (TailProbe(5, 9, 7, 7.0), ProbeSpan(4, 9), False),
    (TailProbe(5, 9, None, None), ProbeSpan(5, 9), True),
    (TailProbe(5, 9, None, None), ProbeSpan(8, 9), True),
    (TailProbe(5, 9, None, None), ProbeSpan(5, 10), False),  # a record may have been appended
    (TailProbe(5, 9, None, None), ProbeSpan(10, 11), False),
    (TailProbe(5, 9, None, None), ProbeSpan(5, 9, log=1), False),
]


@pytest.mark.parametrize(("probe", "span", "good"), SPANS)
def test_is_answered_for_probe_and_span(
    probe: TailProbe | None,
    span: ProbeSpan,
    good: bool,
) -> None:
    assert is_answered(probe, span) is good


def test_probe_has_first_record_or_none() -> None:
    source = Source(7)
    pay = TopicPartition("pay", 1)
    probes = reader(source)
    probes.request({PARTITION: ProbeSpan(5, 9), pay: ProbeSpan(8, 9)})
    probes.read_wanted()
    assert probes.answers == {PARTITION: TailProbe(5, 9, 7, 7.0), pay: TailProbe(8, 9, None, None)}
    assert source.asked == [({PARTITION: (5, 9), pay: (8, 9)}, "read_committed")]


@pytest.mark.parametrize(
    ("record", "log_start", "probe"),
    [
        (7, 5, TailProbe(5, 9, 7, 7.0)),
        (7, 6, TailProbe(6, 9, 7, 7.0)),
        (7, 8, None),
        (None, 5, TailProbe(5, 9, None, None)),
        (None, 8, TailProbe(8, 9, None, None)),
        (None, 9, TailProbe(9, 9, None, None)),
        (None, 10, None),
    ],
)
def test_removed_offsets_are_not_proven_empty(
    record: int | None, log_start: int, probe: TailProbe | None
) -> None:
    found = None if record is None else first(record)
    assert tail_probe(ProbeSpan(5, 9), found, log_start) == probe


def test_emptiness_is_joined_to_earlier_probe_unless_offsets_between_were_removed() -> None:
    source = Source()
    probes = reader(source)
    probes.request({PARTITION: ProbeSpan(5, 9)})
    probes.read_wanted()
    probes.request({PARTITION: ProbeSpan(9, 12)})
    probes.read_wanted()
    assert probes.answers == {PARTITION: TailProbe(5, 12, None, None)}
    source.log_start = 14
    probes.request({PARTITION: ProbeSpan(12, 20)})
    probes.read_wanted()
    assert probes.answers == {PARTITION: TailProbe(14, 20, None, None)}


def test_known_answers_are_reused_and_unwanted_dropped() -> None:
    source = Source(7)
    pay = TopicPartition("pay", 1)
    probes = reader(source)
    probes.request({PARTITION: ProbeSpan(5, 9), pay: ProbeSpan(1, 2)})
    probes.read_wanted()
    probes.request({PARTITION: ProbeSpan(5, 20)})
    probes.read_wanted()
    assert len(source.asked) == 1
    assert probes.answers == {PARTITION: TailProbe(5, 9, 7, 7.0)}


def test_partition_without_answer_is_read_again() -> None:
    source = Source(7)
    source.silent = {PARTITION}
    probes = reader(source)
    probes.request({PARTITION: ProbeSpan(5, 9)})
    probes.read_wanted()
    assert probes.answers == {}
    source.silent = set()
    probes.read_wanted()
    assert probes.answers[PARTITION].first_offset == 7


def test_partitions_beyond_limit_are_read_in_next_round() -> None:
    source = Source(0)
    probes = reader(source)
    probes.request({TopicPartition("orders", number): ProbeSpan(0, 1) for number in range(501)})
    probes.read_wanted()
    probes.read_wanted()
    assert [len(ranges) for ranges, _ in source.asked] == [500, 1]
    assert len(probes.answers) == 501


def test_lookups_are_read_and_returned_once() -> None:
    source = Source(7)
    probes = reader(source)
    probes.request({}, ((1, PARTITION, 7), (2, PARTITION, 8)))
    probes.read_wanted()
    probes.read_wanted()
    assert source.asked == [
        ({PARTITION: (7, 8)}, "read_uncommitted"),
        ({PARTITION: (8, 9)}, "read_uncommitted"),
    ]
    assert probes.take_lookup_results() == [(1, True), (2, False)]
    assert probes.take_lookup_results() == []


def test_lookup_below_log_start_is_not_present() -> None:
    source = Source(100)
    source.log_start = 100
    probes = reader(source)
    probes.request({}, ((1, PARTITION, 7),))
    probes.read_wanted()
    assert probes.take_lookup_results() == [(1, False)]


def test_lookup_without_answer_has_no_result() -> None:
    source = Source(7)
    source.silent = {PARTITION}
    probes = reader(source)
    probes.request({}, ((1, PARTITION, 7),))
    probes.read_wanted()
    assert probes.take_lookup_results() == []


def test_failed_read_is_counted_and_keeps_answers() -> None:
    health, source = CollectionHealth(), Source(7)
    probes = reader(source, health)
    probes.request({PARTITION: ProbeSpan(5, 9)})
    probes.read_wanted()
    source.down = True
    probes.request({PARTITION: ProbeSpan(8, 9)}, ((1, PARTITION, 7),))
    probes.read_wanted()
    assert probes.answers == {PARTITION: TailProbe(5, 9, 7, 7.0)}
    assert health.report().errors == {("us", CollectionStage.TAIL_RECORDS, "timeout"): 2}


def test_denied_partitions_and_lookups_are_counted_each_round_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    health, source, pay = CollectionHealth(), Source(7), TopicPartition("pay", 1)
    source.denied, source.silent = {PARTITION}, {TopicPartition("slow", 0)}
    probes = reader(source, health)
    probes.request(
        {
            PARTITION: ProbeSpan(5, 9),
            pay: ProbeSpan(5, 9),
            TopicPartition("slow", 0): ProbeSpan(5, 9),
        }
    )
    probes.read_wanted()
    assert probes.answers == {pay: TailProbe(5, 9, 7, 7.0)}
    probes.request({}, ((1, PARTITION, 7),))
    probes.read_wanted()
    assert health.report().errors == {("us", CollectionStage.TAIL_RECORDS, "authorization"): 2}
    assert [record.getMessage() for record in caplog.records] == [
        "reading records of orders-0 on cluster us failed (authorization)"
    ]


def test_probe_reader_reads_on_request_until_stopped() -> None:
    source = Source(7)
    probes = reader(source)
    probes.start()
    probes.request({PARTITION: ProbeSpan(5, 9)})
    assert source.answered.wait(30)
    probes.stop()
    assert len(source.asked) == 1
