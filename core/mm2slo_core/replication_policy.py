"""Kafka's replication policies in Python, and the internal topics of a flow.

Formulas: `DefaultReplicationPolicy`, `IdentityReplicationPolicy` and `ReplicationPolicy` of Kafka
4.1; KIP-690 and KIP-949 (separators of internal topics), KIP-1074 (internal topics).

A policy knows only names: for it, `orders.v1` comes from a cluster `orders`.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from mm2slo_core.topology import Flow

HEARTBEATS_TOPIC = "heartbeats"


class KafkaVersion(NamedTuple):
    """Kafka release of MirrorMaker 2, as in `KafkaVersion(4, 1)`."""

    major: int
    minor: int


DEFAULT_VERSION = KafkaVersion(4, 1)
_REPLICATES_USER_INTERNAL_TOPICS = KafkaVersion(4, 0)
_CYCLES_BY_SOURCE = KafkaVersion(4, 4)


@dataclass(frozen=True)
class DefaultPolicy:
    """How a flow names topics: remote topics are `<alias><separator><topic>`.

    *version* is MirrorMaker 2's: it decides which user topics are internal (all `*.internal` and
    `*-internal` before 4.0) and which names are cycles (4.4). *separator* is also part of the
    names of offset syncs and checkpoints topics, unless *internal_separator_enabled* is False;
    before Kafka 3.1 these two always had dots, so use False for those versions.
    """

    separator: str = "."
    internal_separator_enabled: bool = True
    version: KafkaVersion = DEFAULT_VERSION

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name on the target of *topic* of the cluster *source_alias*."""
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the source alias: the text before the first separator, a known alias or not.

        None for a local topic: without two parts, as Java's `split` counts them (`foo.` has one).
        """
        if not self.separator:
            # With an empty pattern Java splits into single characters.
            return topic[0] if len(topic) > 1 else None
        # Java's `split` drops empty parts at the end, Python's does not.
        head, *rest = topic.split(self.separator)
        return head if any(rest) else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name on the cluster that *topic* was replicated from; None if local."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Return the name on the original cluster, any number of hops away."""
        # A policy that keeps names gives the topic itself as upstream.
        while (upstream := self.upstream_topic(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def offset_syncs_topic(self, cluster_alias: str) -> str:
        """Return the offset syncs topic; *cluster_alias* is the cluster that does not hold it."""
        between = self._internal_separator
        return f"mm2-offset-syncs{between}{cluster_alias}{between}internal"

    def checkpoints_topic(self, source_alias: str) -> str:
        """Return the checkpoints topic on the target of flows from *source_alias*."""
        return f"{source_alias}{self._checkpoints_suffix}"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return whether *topic* is `heartbeats` or ends in `<separator>heartbeats`."""
        return self.original_topic(topic) == HEARTBEATS_TOPIC

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._checkpoints_suffix)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Return whether *topic* is MirrorMaker 2's; before 4.0 the suffix alone decides."""
        suffixed = topic.endswith(f"{self._internal_separator}internal")
        if self.version < _REPLICATES_USER_INTERNAL_TOPICS:  # KIP-1074
            return suffixed
        return (suffixed and topic.startswith("mm2")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether *topic* is never replicated: Kafka's, hidden, or MirrorMaker 2's own."""
        if topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic):
            return True
        return self.version < _REPLICATES_USER_INTERNAL_TOPICS and topic.endswith(
            (".internal", "-internal")
        )

    def is_cycle(self, topic: str, target_alias: str, source_alias: str | None = None) -> bool:
        """Return whether *topic* was on *target_alias* before, by the aliases in its name.

        From 4.4 a topic with *source_alias* in its name is a cycle as well (KAFKA-9914).
        """
        origins = {target_alias}
        if source_alias is not None and self.version >= _CYCLES_BY_SOURCE:
            origins.add(source_alias)
        return self._has_origin(topic, origins)

    def _has_origin(self, topic: str, origins: Collection[str]) -> bool:
        while (source := self.topic_source(topic)) is not None:
            if source in origins:
                return True
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream == topic:
                return False
            topic = upstream
        return False

    @property
    def _internal_separator(self) -> str:
        return self.separator if self.internal_separator_enabled else "."

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self._internal_separator}checkpoints{self._internal_separator}internal"


@dataclass(frozen=True)
class IdentityPolicy(DefaultPolicy):
    """Topics keep their names; only names that end in `heartbeats` follow the default policy.

    *source_alias* is the source of every topic, as `source.cluster.alias` in MirrorMaker 2; None
    if not known. Names that do not change show no cycles.
    """

    source_alias: str | None = field(kw_only=True)

    def remote_topic(self, source_alias: str, topic: str) -> str:
        return super().remote_topic(source_alias, topic) if _is_renamed(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        return super().topic_source(topic) if _is_renamed(topic) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if _is_renamed(topic) else topic

    def is_cycle(self, topic: str, target_alias: str, source_alias: str | None = None) -> bool:
        """Return whether a heartbeats topic was on *target_alias* before; others show no cycle."""
        del source_alias  # KAFKA-9914 does not change policies that keep names
        return self._has_origin(topic, {target_alias})


def _is_renamed(topic: str) -> bool:
    # Kafka's `looksLikeHeartbeat`: without the prefix, heartbeats of all sources would be in one
    # topic.
    return topic.endswith(HEARTBEATS_TOPIC)


ReplicationPolicy: TypeAlias = DefaultPolicy | IdentityPolicy


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
    """Connect's configurations of the opposite flow, whose herder writes the heartbeats that this
    flow replicates (KIP-382)."""


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
    """Return `mm2-<kind>.<alias>.internal`; separator settings do not change these names.

    Source: `MirrorMakerConfig.workerConfig`, where they are defaults of the worker's settings.
    """
    return f"mm2-{kind}.{source_alias}.internal"
