"""Reads topics of a flow to their end: committed offsets, offset syncs, configs, timeline.

The connectors of a flow are read as the exporter reads them.
"""

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from mm2slo_audit.scope.arrival_polls import TimelineKey, TopicTimeline
from mm2slo_audit.scope.sync_history import Commit, SyncHistory, TimedSync
from mm2slo_core.config.exporter_settings import Engine, FlowSettings, SettingsSource
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.mm2_config.flow_settings import setting_differences
from mm2slo_core.mm2_config.running_settings import (
    RunningConnectors,
    observed_flow,
    overridden_settings,
)
from mm2slo_core.offset_translation import TransactionalCommits
from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.records.mirror_records import DecodeError, OffsetSync, Tombstone
from mm2slo_core.records.timeline_record import WatermarkRecord
from mm2slo_core.replication_policy import internal_topics
from mm2slo_core.topic_selection import (
    connect_configs_topic,
    connect_offsets_topic,
    replication_policy,
)
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.connector_configs import ConnectorConfigs
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import Isolation
from mm2slo_kafka.tailed_topic import Start, TailRecord, TailState
from mm2slo_kafka.topic_tail import TopicTail

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitsAndSyncs:
    """Commits and syncs by source partition."""

    commits: Mapping[TopicPartition, Commit] = field(default_factory=dict)
    syncs: Mapping[TopicPartition, SyncHistory] = field(default_factory=dict)


def read_commits_and_syncs(
    flow: FlowConfig, clients: Mapping[str, ClusterClient], topics: Collection[str]
) -> CommitsAndSyncs:
    """Read both internal topics of *flow* to their ends, for the source *topics*.

    Empty for other engines than MirrorMaker 2. Raises KafkaOperationError or TimeoutError.
    """
    if flow.engine is not Engine.MIRRORMAKER2:
        return CommitsAndSyncs()
    return CommitsAndSyncs(read_commits(flow, clients, topics), read_syncs(flow, clients, topics))


def read_commits(
    flow: FlowSettings, clients: Mapping[str, ClusterClient], topics: Collection[str]
) -> Mapping[TopicPartition, Commit]:
    """Committed offsets of the source *topics*. Raises as `read_to_end`."""
    topic = connect_offsets_topic(flow)
    found: dict[TopicPartition, Commit] = {}
    # With exactly-once the offsets are part of the transaction of the records (KIP-618): one that
    # was aborted must not count as a position, or its records would look lost.
    isolation: Isolation = "read_committed" if flow.exactly_once else "read_uncommitted"
    for record in read_to_end(clients[flow.flow.target], topic, isolation=isolation):
        try:
            decoded = SourceOffset.decode(record.key, record.value)
        except DecodeError as error:
            logger.warning("a record of %s cannot be read: %s", topic, error)
            continue
        if decoded is None:
            continue
        key = decoded.key
        if key.connector != flow.connect.source_connector or key.cluster != flow.flow.source:
            continue
        if isinstance(decoded, Tombstone):
            found.pop(key.topic_partition, None)
        elif key.topic_partition.topic in topics:
            earlier = found.get(key.topic_partition)
            if earlier is not None:
                went_back = decoded.offset < earlier.offset
                earlier = None if went_back else earlier._replace(earlier=None)
            at = (record.timestamp_ms or 0) / 1000
            found[key.topic_partition] = Commit(decoded.offset, at, earlier)
    return found


def read_syncs(
    flow: FlowSettings, clients: Mapping[str, ClusterClient], topics: Collection[str]
) -> Mapping[TopicPartition, SyncHistory]:
    """Offset syncs of the source *topics*. Raises as `read_to_end`."""
    placed = internal_topics(flow.flow, replication_policy(flow), flow.offset_syncs_location)
    cluster, topic = placed.offset_syncs
    found: defaultdict[TopicPartition, SyncHistory] = defaultdict(SyncHistory)
    for record in read_to_end(clients[cluster], topic):
        try:
            decoded = OffsetSync.decode(record.key, record.value)
        except DecodeError as error:
            logger.warning("a record of %s cannot be read: %s", topic, error)
            continue
        if isinstance(decoded, Tombstone):
            found.pop(decoded.key, None)
        elif decoded.topic_partition.topic in topics:
            at = (record.timestamp_ms or 0) / 1000
            found[decoded.topic_partition].add(
                TimedSync(decoded.upstream_offset, decoded.downstream_offset, at)
            )
    return found


_SETTING_NAMES: Final = ("offset_syncs_location", "policy.")
"""Settings that decide which topics are read: only named, the configured ones are used."""


def read_connectors(client: ClusterClient, topic: str) -> ConnectorConfigs:
    """The connectors in a configuration topic of Connect. Raises as `read_to_end`."""
    found = ConnectorConfigs()
    for record in read_to_end(client, topic):
        with suppress(DecodeError):
            found.apply(record)
    return found


def commits_in_transactions(
    flow: FlowSettings, client: ClusterClient, connectors: ConnectorConfigs
) -> bool:
    """Whether the worker of *flow* has exactly-once support. Raises as `read_to_end`."""
    connector = flow.connect.source_connector
    if connector not in connectors.fenced:
        return False
    commits = TransactionalCommits()
    topic = connect_offsets_topic(flow)

    def is_decided(positions: Mapping[int, int | None]) -> bool:
        # The marker of the newest commit may not have been read yet.
        commits.read_up_to(positions)
        return commits.found is not None

    for record in read_to_end(client, topic, is_enough=is_decided):
        commits.add_record(record.partition, record.offset)
        with suppress(DecodeError):
            found = SourceOffset.decode(record.key, record.value)
            if isinstance(found, SourceOffset) and found.connector == connector:
                commits.add_commit(record.partition, record.written_at, found.topic_partition)
    return connectors.is_transactional(connector, commits)


def use_running_settings(
    flow: FlowConfig, client: ClusterClient
) -> tuple[FlowConfig, tuple[str, ...]]:
    """*flow* with the settings of its running connectors, and a sentence for each difference.

    *client* is that of its target. If they cannot be read, a sentence has the reason.
    """
    topic = connect_configs_topic(flow)
    try:
        connectors = read_connectors(client, topic)
        running = RunningConnectors(
            connectors.by_name, transactional=commits_in_transactions(flow, client, connectors)
        )
    except (KafkaOperationError, TimeoutError) as error:
        return flow, (f"{flow.label}: the configured settings were used, because {error}",)
    return observed_flow(flow, running), tuple(_differences(flow, running))


def _differences(flow: FlowConfig, running: RunningConnectors) -> Iterator[str]:
    is_used = flow.settings is SettingsSource.OBSERVED
    observed = observed_flow(flow.model_copy(update={"settings": SettingsSource.OBSERVED}), running)
    found = [(each, is_used) for each in overridden_settings(flow, observed)]
    found += [
        (each, False)
        for each in setting_differences(flow, running.by_name)
        if each.field.startswith(_SETTING_NAMES)
    ]
    for (name, configured, used), is_observed in found:
        if name == "transforms":
            continue  # what they mean for an audit is said below
        choice = used if is_observed else configured
        yield (
            f"{flow.label}: {name} is configured as {configured!r}, but MirrorMaker 2 runs with"
            f" {used!r}; the audit used {choice!r}"
        )
    connector = running.by_name.get(flow.connect.source_connector)
    if connector is not None and (transforms := connector.settings.get("transforms")):
        yield (
            f"{flow.label}: MirrorMaker 2 runs with the transforms {transforms}: records that they"
            " leave out count as lost, records that they change as altered, unless"
            " audit.identity leaves these parts out"
        )


_MAX_POLLS: Final = 3_000_000
"""Kept in memory."""

_JOINED_MS: Final = 500
"""Width of brackets to join beyond that, doubled as often as necessary."""


def read_timeline(
    client: ClusterClient,
    topic: str,
    since: float,
    wanted: Collection[TimelineKey],
    *,
    until: float = math.inf,
    max_polls: int = _MAX_POLLS,
) -> dict[TimelineKey, TopicTimeline]:
    """The *wanted* records of *topic* from *since* to *until* (epoch s).

    Empty if it does not exist. Brackets are joined so that about *max_polls* remain. Raises
    KafkaOperationError or TimeoutError.
    """
    found: dict[TimelineKey, TopicTimeline] = {}
    malformed = polls = 0
    width = _JOINED_MS
    keys = {f"{flow.slug}/{side}/{name}".encode() for flow, side, name in wanted}
    for raw in read_to_end(client, topic, start=max(0.0, since)):
        if raw.key not in keys:
            continue
        try:
            record = WatermarkRecord.decode(raw.value)
        except DecodeError:
            malformed += 1
            continue
        if record.times.requested_at > until:
            break
        key = (record.flow, record.side, record.topic)
        if key in wanted:
            found.setdefault(key, TopicTimeline()).add(record)
            polls += len(record.partitions)
        if polls > max_polls:
            # Half, so that this is rare.
            while (polls := sum(map(TopicTimeline.count_polls, found.values()))) > max_polls // 2:
                for timeline in found.values():
                    timeline.join_polls(width)
                width *= 2
    if malformed:
        logger.warning("%d records of %s cannot be read", malformed, topic)
    return found


_TIMEOUT_SECONDS: Final = 20.0
_BATCH: Final = 10_000
_SETTLE_SECONDS: Final = 5.0


def read_to_end(
    client: ClusterClient,
    topic: str,
    *,
    start: Start = "start",
    isolation: Isolation = "read_uncommitted",
    is_enough: Callable[[Mapping[int, int | None]], bool] = lambda _positions: True,
) -> Iterator[TailRecord]:
    """The records of *topic* in order; none if it does not exist.

    *is_enough* gets the offset up to which each partition was read; reading goes on until it is
    true, for 5 seconds at most. Raises KafkaOperationError if reading is denied, and it or
    TimeoutError if the cluster returns nothing for 20 seconds.
    """
    tail = TopicTail(client, topic, start=start, isolation=isolation)
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    settled: float | None = None
    try:
        while True:
            batch = tail.poll(_BATCH, 0.2)
            if batch.records:
                deadline = time.monotonic() + _TIMEOUT_SECONDS
                yield from batch.records
            if tail.state is TailState.ABSENT:
                return
            if tail.caught_up:
                # Markers of transactions take offsets but are never returned as records (KIP-98):
                # only the position shows that the last one was passed.
                settled = settled or time.monotonic() + _SETTLE_SECONDS
                if is_enough(tail.position) or time.monotonic() > settled:
                    return
            denied = batch.problem is not None and batch.problem.kind is ErrorKind.AUTHORIZATION
            if batch.problem is not None and (denied or time.monotonic() > deadline):
                raise batch.problem
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"no progress reading topic {topic!r} on cluster {client.alias} for"
                    f" {_TIMEOUT_SECONDS:g} s"
                )
    finally:
        tail.close()
