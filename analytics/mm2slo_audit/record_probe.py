"""Compares the newest records of both sides and suggests what an audit should ignore.

The probe reads Kafka without Spark; its report is a table of differences, and YAML for mm2slo.yaml.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import yaml
from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_audit.scope.reachable_units import ReachableUnit, ReachableUnits
from mm2slo_core.audit.audit_scope import NotAudited
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.audit.fingerprint import Identity, common_identity
from mm2slo_core.audit.transformation_probe import (
    Differences,
    ProbedRecord,
    compare_records,
    suggest_identity,
)
from mm2slo_core.config.config_model import Config
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.record_slice import read_slice
from mm2slo_kafka.tailed_topic import TailRecord

DEFAULT_RECORDS: Final = 1_000
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
    records: int = DEFAULT_RECORDS,
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
                        found = _compare_topic(unit, number, source, target, records)
                        target_topic = unit.unit.topic
                        probes.append(Probe(feed.flow.flow, feed.topic, target_topic, found))
    except KafkaOperationError as problem:
        raise UserError(str(problem)) from None
    return tuple(probes), reach.not_audited


def _compare_topic(
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
        total += _compare_partition(source, here, target, there, each)
    return total


def _compare_partition(
    source: ClusterClient,
    here: TopicPartition,
    target: ClusterClient,
    there: TopicPartition,
    max_records: int,
) -> Differences:
    """Compare the newest copies with the source records from the oldest of their timestamps on."""
    copies = _read_newest(target, there, max_records)
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
            found = compare_records(_to_probed_records(originals), _to_probed_records(copies))
            if found.compared * 2 >= len(copies):
                return found
    # The target sets its own timestamps: compare the newest records of both sides.
    return compare_records(
        _to_probed_records(_read_newest(source, here, _ORIGINALS_PER_COPY * max_records)),
        _to_probed_records(copies),
    )


def _read_newest(
    client: ClusterClient, partition: TopicPartition, max_records: int
) -> list[TailRecord]:
    end = client.end_offsets([partition]).offsets.get(partition)
    start = client.start_offsets([partition]).offsets.get(partition)
    if end is None or start is None or start >= end:
        return []
    first = max(start, end - max_records)
    return read_slice(client, partition, first, end - first)


def _to_probed_records(records: Sequence[TailRecord]) -> list[ProbedRecord]:
    return [
        ProbedRecord(each.key, each.value, tuple(each.headers or ()), each.timestamp_ms)
        for each in records
    ]


def write_probe_report(
    console: Console, probes: Sequence[Probe], not_compared: Sequence[NotAudited]
) -> None:
    """Print a table of differences, then the suggested configuration."""
    compared = [each for each in probes if each.found.compared]
    if compared:
        console.print(_table(compared))
        for each in compared:
            for line in _remarks(each.found):
                console.print(
                    f"{each.flow.label} {each.source_topic}: {line}", markup=False, highlight=False
                )
    for probe in probes:
        if not probe.found.compared:
            console.print(
                f"{probe.flow.label} {probe.source_topic}: no record could be compared: the target"
                " has no copy of a record that the source still has",
                markup=False,
                highlight=False,
            )
    for topic in not_compared:
        console.print(
            f"{topic.target_topic}: {topic.reason}: {topic.detail}", markup=False, highlight=False
        )
    if compared:
        _suggest(console, compared)


def suggest_identities(probes: Sequence[Probe]) -> Mapping[Flow, Identity]:
    """The identity to configure per flow, over all its topics; only flows with a change."""
    by_flow: defaultdict[Flow, list[Identity]] = defaultdict(list)
    for each in probes:
        by_flow[each.flow].append(suggest_identity(each.found))
    merged = {flow: common_identity(found) for flow, found in by_flow.items()}
    return {flow: found for flow, found in merged.items() if found != Identity()}


def format_yaml(found: Mapping[Flow, Identity]) -> str:
    return yaml.safe_dump(
        {
            "flows": [
                {"flow": flow.label, "audit": {"identity": _changes(identity)}}
                for flow, identity in found.items()
            ]
        },
        sort_keys=False,
    )


def _table(probes: Sequence[Probe]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("Flow", no_wrap=True)
    table.add_column("Topic", overflow="fold")
    for heading in ("Compared", "Key", "Value", "Headers", "Timestamp"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in probes:
        found = each.found
        table.add_row(
            each.flow.label,
            each.source_topic,
            f"{found.compared:,}",
            *(_share(count) for count in (found.key, found.value, found.headers, found.timestamp)),
        )
    return table


def _share(count: int) -> str:
    return "same" if not count else f"{count:,} differ"


def _remarks(found: Differences) -> list[str]:
    lines = []
    identity = suggest_identity(found)
    if found.header_names:
        counted = sorted(found.header_names.items())
        names = ", ".join(f"{name} ({count:,})" for name, count in counted)
        lines.append(f"headers that differ: {names}")
    for name in ("key", "value", "timestamp"):
        count = getattr(found, name)
        if count and getattr(identity, name):
            lines.append(
                f"the {name} differs in {count:,} of {plural(found.compared, 'record')}: too rare"
                " for a transformation, so it stays in the identity"
            )
    if found.unmatched:
        lines.append(f"copies without a matching original: {found.unmatched:,}")
    return lines


def _suggest(console: Console, probes: Sequence[Probe]) -> None:
    found = suggest_identities(probes)
    if not found:
        console.print(
            "copies equal their originals: no change of the identity needed", highlight=False
        )
        return
    console.print("merge into the flows of mm2slo.yaml:", highlight=False)
    console.print(format_yaml(found), markup=False, highlight=False, soft_wrap=True)


def _changes(identity: Identity) -> dict[str, object]:
    found: dict[str, object] = {
        name: False
        for name in ("key", "value", "headers", "timestamp")
        if not getattr(identity, name)
    }
    if identity.ignored_headers:
        found["ignored_headers"] = list(identity.ignored_headers)
    return found
