"""Certain loss, whatever the order of production, deletion, replication and reading.

A model of one source partition knows what was lost; the exporter's state, its probes and its
readings of log starts run in any order between the model's events.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest
from flow_observations import Scene, flow_config, lost_records
from hypothesis import example, given
from hypothesis import strategies as st

from mm2slo_core.config.exporter_settings import CanaryCarrier, Isolation
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.flow_observation import NewestSync
from mm2slo_exporter.readers.probe_reader import ProbeReader
from mm2slo_exporter.service.flow_runner import probes_in_use, wanted_probes
from mm2slo_exporter.state.flow_report import FlowReport, PartitionState
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.first_records import FirstRecord, FirstRecords
from mm2slo_kafka.partition_offsets import OffsetReading

ORDERS = TopicPartition("orders", 0)
Step = tuple[str, int]


class SourcePartition:
    """The truth: records and markers of the log, MirrorMaker 2's position and what was lost."""

    alias = "us"

    def __init__(self) -> None:
        self.is_record = [True] * 40
        self.start = 0
        self.position = 40
        self.copies = 40
        self.sync = NewestSync(0, 0, 0.0)
        self.lost_records = 0
        self.lost_markers = 0
        self.deleted_during_probe = 0

    @property
    def end(self) -> int:
        return len(self.is_record)

    def delete(self, count: int) -> None:
        new = min(self.start + count, self.end)
        removed = self.is_record[max(self.start, self.position) : new]
        self.lost_records += sum(removed)
        self.lost_markers += len(removed) - sum(removed)
        self.start = new

    def replicate(self, count: int) -> None:
        """Copy records from the position on, or from the log start if they were removed."""
        offsets = range(max(self.position, self.start), self.end)
        wanted = [offset for offset in offsets if self.is_record[offset]][:count]
        for offset in wanted:
            if offset != self.position:
                self.sync = NewestSync(offset, self.copies, float(offset))
            self.copies += 1
            self.position = offset + 1

    def first_records(
        self, ranges: Mapping[TopicPartition, tuple[int, int]], _isolation: str
    ) -> FirstRecords:
        found: dict[TopicPartition, FirstRecord | None] = {}
        for partition, (start, end) in ranges.items():
            known = range(max(start, self.start), min(end, self.end))
            offset = next((each for each in known if self.is_record[each]), None)
            found[partition] = None if offset is None else FirstRecord(offset, offset * 1000)
        self.delete(self.deleted_during_probe)
        return FirstRecords(found)

    def start_offsets(self, partitions: Sequence[TopicPartition]) -> OffsetReading:
        return OffsetReading(dict.fromkeys(partitions, self.start), {}, 0.0, 0.0)


class Exporter:
    """The exporter's state of the partition; each reading is a step of its own."""

    def __init__(self, truth: SourcePartition) -> None:
        self.truth = truth
        self.scene = Scene()
        self.log = self.scene.add("orders")
        self.tracker = self._new_tracker()
        self.probes = ProbeReader(
            "us->eu",
            cast("ClusterClient", truth),
            "read_uncommitted",
            CollectionHealth(),
            every=60.0,
        )
        self.at = 100.0
        self.totals = [0]
        self.read_log_start()
        self.poll()

    def _new_tracker(self) -> FlowTracker:
        return FlowTracker(
            flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
        )

    def read_log_start(self) -> None:
        self.log_starts, self.starts_read_at = {ORDERS: self.truth.start}, self.at + 1.0

    def poll(self) -> FlowReport:
        self.at += 5.0
        self.log.end, self.log.target_end = self.truth.end, self.truth.copies
        self.log.sync = self.truth.sync
        self.log.probe = self.probes.answers.get(ORDERS)
        seen = self.scene.look(self.at)
        assert seen.source_offsets is not None
        read = replace(
            seen.source_offsets, starts=self.log_starts, starts_read_at=self.starts_read_at
        )
        report = self.tracker.update(replace(seen, source_offsets=read))
        self.probes.request(
            wanted_probes(report, Isolation.READ_UNCOMMITTED),
            in_use=probes_in_use(report, self.probes.answers),
        )
        self.totals.append(lost_records(report))
        return report

    def restart(self) -> None:
        """Continue in another process, from what this one saved."""
        self.scene.save_losses(self.tracker)
        self.tracker = self._new_tracker()

    def settle(self) -> PartitionState:
        """Read everything until nothing changes; returns the partition."""
        for _ in range(4):
            self.read_log_start()
            self.probes.read_wanted()
            report = self.poll()
        return report.topics[0].partitions[0]


def run(steps: Sequence[Step]) -> tuple[SourcePartition, Exporter]:
    truth = SourcePartition()
    exporter = Exporter(truth)
    for name, count in steps:
        match name:
            case "produce":
                truth.is_record += [True] * count
            case "mark":
                truth.is_record += [False] * count
            case "delete":
                truth.delete(count)
            case "replicate":
                truth.replicate(count)
            case "read log start":
                exporter.read_log_start()
            case "poll":
                exporter.poll()
            case "probe":
                exporter.probes.read_wanted()
            case "probe while records are deleted":
                truth.deleted_during_probe = count
                exporter.probes.read_wanted()
                truth.deleted_during_probe = 0
        assert exporter.totals == sorted(exporter.totals)
        assert exporter.totals[-1] <= truth.lost_records + truth.lost_markers
    return truth, exporter


READINGS = ["read log start", "poll", "probe", "probe while records are deleted"]


def steps(*events: str) -> st.SearchStrategy[list[Step]]:
    """Any order of *events* and of the exporter's readings."""
    each = st.tuples(st.sampled_from([*events, *READINGS]), st.integers(1, 60))
    return st.lists(each, max_size=40)


@given(steps("produce", "delete"))
@example([("produce", 60), ("poll", 1), ("delete", 100), ("probe", 1), ("poll", 1)])
@example([("produce", 60), ("poll", 1), ("delete", 70), ("probe", 1), ("poll", 1), ("poll", 1)])
def test_loss_of_stopped_flow_is_exact_in_any_order(order: list[Step]) -> None:
    truth, exporter = run(order)
    found = exporter.settle()
    assert exporter.totals[-1] == truth.lost_records
    assert found.next_offset == 40
    assert found.lag_records == truth.end - max(truth.start, 40)
    assert found.headroom is not None
    assert found.headroom.records == 40 - truth.start


@given(steps("produce", "mark", "delete"))
@example([("produce", 9), ("delete", 60), ("mark", 5), ("poll", 1), ("probe", 1), ("poll", 1)])
def test_markers_among_lost_records_only_raise_the_count(order: list[Step]) -> None:
    truth, exporter = run(order)
    found = exporter.settle()
    lost = exporter.totals[-1]
    assert truth.lost_records <= lost <= truth.lost_records + truth.lost_markers
    waiting = [n for n in range(max(truth.start, 40), truth.end) if truth.is_record[n]]
    assert found.lag_records == (truth.end - waiting[0] if waiting else 0)


@given(steps("produce", "delete", "replicate"))
@example([("produce", 99), ("replicate", 9), ("poll", 1), ("delete", 99), ("replicate", 9)])
def test_loss_of_flow_that_stops_and_resumes_is_never_too_high(order: list[Step]) -> None:
    truth, exporter = run(order)
    exporter.settle()
    assert exporter.totals[-1] <= truth.lost_records


@given(steps("produce", "delete"), st.lists(st.integers(1, 60), max_size=5))
@example([("produce", 60), ("delete", 80)], [20])
def test_lost_records_are_not_replicated_when_passed_after_a_restart(
    order: list[Step], replicated: list[int]
) -> None:
    truth, exporter = run(order)
    exporter.settle()
    exporter.restart()
    exporter.settle()
    copies = truth.copies
    for count in replicated:
        truth.replicate(count)
        exporter.poll()
    report = exporter.poll()
    assert report.topics[0].replicated_records_total == truth.copies - copies


@pytest.mark.parametrize("polls_until_log_start_is_read", [0, 1, 3])
def test_loss_of_slow_flow_that_continues_at_log_start_is_exact(
    polls_until_log_start_is_read: int,
) -> None:
    reads = [("poll", 1)] * polls_until_log_start_is_read + [("read log start", 1), ("poll", 1)]
    # Position 50 of 140; retention removes up to 100 while records are copied.
    slow: list[Step] = [("produce", 100), ("replicate", 10), ("poll", 1), ("delete", 100)]
    truth, exporter = run([*slow, ("replicate", 10), *reads, ("replicate", 10), ("poll", 1)])
    assert (exporter.totals[-1], truth.lost_records) == (50, 50)


def test_few_offsets_without_records_in_purged_topic_are_no_loss() -> None:
    purged: list[Step] = [("produce", 10), ("mark", 1), ("produce", 10), ("mark", 1)]
    copied: list[Step] = [("replicate", 20), ("poll", 1), ("delete", 21)]
    cycle = [*purged, *copied, ("read log start", 1), ("poll", 1)]
    truth, exporter = run([("delete", 40), *cycle * 3])
    assert (exporter.totals[-1], truth.lost_records) == (0, 0)
