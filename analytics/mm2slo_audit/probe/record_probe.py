"""Reads the newest records of both sides and compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_audit.scope import open_clients
from mm2slo_audit.scope.reachable_units import ReachableUnits
from mm2slo_core.audit.transformation_probe import Differences, ProbedRecord, compare_records
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.record_slice import read_slice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_audit.scope.audit_units import Feed
    from mm2slo_audit.scope.reachable_units import ReachableUnit
    from mm2slo_core.audit.audit_scope import NotAudited
    from mm2slo_core.config import Config
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.tailed_topic import TailRecord

RECORDS: Final = 1_000
"""Per flow and topic."""
_MIN_RECORDS: Final = 20
"""Per partition: with fewer records a rare difference would be missed."""
_ORIGINALS_PER_COPY: Final = 3
"""Read so many originals per copy: many may share one timestamp or not be replicated yet."""


@dataclass(frozen=True, slots=True)
class Probe:
    flow: Flow
    source_topic: str
    target_topic: str
    found: Differences


def probe(
    config: Config,
    flows: Sequence[str],
    topics: Sequence[str],
    *,
    records: int = RECORDS,
    on_topic: Callable[[str], None] = lambda _topic: None,
) -> tuple[tuple[Probe, ...], tuple[NotAudited, ...]]:
    """Compare about *records* of each topic; returns also the topics that could not be compared.

    Raises UserError for an unknown flow or topic, and if no pair of clusters answers.
    """
    chosen = config.select(flows)
    labels = {flow.label for flow in chosen}
    probes: list[Probe] = []
    try:
        with open_clients(config) as clients:
            reach = ReachableUnits.find(config, chosen, topics, clients)
            for unit in reach.units:
                for number, feed in enumerate(unit.unit.feeds):
                    if feed.flow.label in labels:
                        on_topic(feed.topic)
                        source, target = clients[feed.flow.flow.source], clients[unit.unit.cluster]
                        found = _compared(unit, number, source, target, records)
                        probes.append(_probe(feed, unit, found))
    except KafkaOperationError as problem:
        raise UserError(str(problem)) from None
    return tuple(probes), reach.not_audited


def _probe(feed: Feed, unit: ReachableUnit, found: Differences) -> Probe:
    return Probe(feed.flow.flow, feed.topic, unit.unit.topic, found)


def _compared(
    unit: ReachableUnit, feed: int, source: ClusterClient, target: ClusterClient, records: int
) -> Differences:
    total = Differences()
    count = min(unit.partitions, unit.source_partitions[feed])
    each = max(_MIN_RECORDS, records // max(count, 1))
    for number in range(count):
        if total.compared >= records:
            break
        here = TopicPartition(unit.unit.feeds[feed].topic, number)
        there = TopicPartition(unit.unit.topic, number)
        total += _partition(source, here, target, there, each)
    return total


def _partition(
    source: ClusterClient,
    here: TopicPartition,
    target: ClusterClient,
    there: TopicPartition,
    max_records: int,
) -> Differences:
    """Compare the newest copies with the source records from the oldest of their timestamps on."""
    copies = _newest(target, there, max_records)
    if not copies:
        return Differences()
    times = [each.timestamp_ms for each in copies if each.timestamp_ms is not None]
    if times:
        start = source.offsets_at([here], min(times) / 1000).offsets.get(here)
        if start is not None:
            last = max(times)
            originals = [
                each
                for each in read_slice(source, here, start, _ORIGINALS_PER_COPY * max_records)
                if each.timestamp_ms is None or each.timestamp_ms <= last
            ]
            found = compare_records(_probed(originals), _probed(copies))
            if found.compared * 2 >= len(copies):
                return found
    # The target sets its own timestamps: compare the newest records of both sides.
    return compare_records(
        _probed(_newest(source, here, _ORIGINALS_PER_COPY * max_records)), _probed(copies)
    )


def _newest(client: ClusterClient, partition: TopicPartition, max_records: int) -> list[TailRecord]:
    end = client.end_offsets([partition]).offsets.get(partition)
    start = client.start_offsets([partition]).offsets.get(partition)
    if end is None or start is None or start >= end:
        return []
    first = max(start, end - max_records)
    return read_slice(client, partition, first, end - first)


def _probed(records: Sequence[TailRecord]) -> list[ProbedRecord]:
    return [
        ProbedRecord(each.key, each.value, tuple(each.headers or ()), each.timestamp_ms)
        for each in records
    ]
