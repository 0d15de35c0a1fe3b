"""The internal topics of a MirrorMaker 2 flow, and the cluster that holds each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.replication_policy import HEARTBEATS_TOPIC

if TYPE_CHECKING:
    from mm2slo_core.replication_policy import ReplicationPolicy
    from mm2slo_core.topology import Flow


class OffsetSyncsLocation(StrEnum):
    """`offset-syncs.topic.location` (KIP-716): the cluster that holds the offset syncs topic."""

    SOURCE = "source"
    TARGET = "target"


class PlacedTopic(NamedTuple):
    """A topic with the alias of its cluster."""

    cluster: str
    topic: str


@dataclass(frozen=True, slots=True)
class InternalTopics:
    """Internal topics of one flow.

    `heartbeats` is read on the source and replicated by this flow to `remote_heartbeats`. The
    three topics of the Connect worker are those of dedicated mode; on a Connect cluster their
    names are set by the worker's configuration, or the connector's `offsets.storage.topic`.
    """

    offset_syncs: PlacedTopic
    checkpoints: PlacedTopic
    heartbeats: PlacedTopic
    remote_heartbeats: PlacedTopic
    connect_offsets: PlacedTopic
    connect_status: PlacedTopic
    connect_configs: PlacedTopic
    heartbeat_configs: PlacedTopic
    """That of the opposite flow, whose heartbeats this flow replicates."""


def internal_topics(
    flow: Flow,
    policy: ReplicationPolicy,
    location: OffsetSyncsLocation = OffsetSyncsLocation.SOURCE,
) -> InternalTopics:
    """Return the internal topics of *flow* in dedicated mode."""
    source, target = flow.source, flow.target
    syncs = (
        PlacedTopic(source, policy.offset_syncs_topic(target))
        if location is OffsetSyncsLocation.SOURCE
        else PlacedTopic(target, policy.offset_syncs_topic(source))
    )
    return InternalTopics(
        offset_syncs=syncs,
        checkpoints=PlacedTopic(target, policy.checkpoints_topic(source)),
        heartbeats=PlacedTopic(source, HEARTBEATS_TOPIC),
        remote_heartbeats=PlacedTopic(target, policy.remote_topic(source, HEARTBEATS_TOPIC)),
        connect_offsets=PlacedTopic(target, connect_topic("offsets", source)),
        connect_status=PlacedTopic(target, connect_topic("status", source)),
        connect_configs=PlacedTopic(target, connect_topic("configs", source)),
        heartbeat_configs=PlacedTopic(source, connect_topic("configs", target)),
    )


def connect_topic(kind: str, source_alias: str) -> str:
    """Return `mm2-<kind>.<alias>.internal`; separator settings do not change these names."""
    return f"mm2-{kind}.{source_alias}.internal"
