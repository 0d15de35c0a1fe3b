"""The topics of a source cluster that a flow replicates, and the names of their copies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from mm2slo_core.config.flow_config import Engine, PolicyKind
from mm2slo_core.name_filters import NameFilter, TopicFilter
from mm2slo_core.record_transforms import RecordTransforms
from mm2slo_core.replication_policy import DEFAULT_VERSION, DefaultPolicy, IdentityPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_core.replication_policy import KafkaVersion, ReplicationPolicy


class TopicRole(StrEnum):
    """The purpose of a replicated topic; only `data` counts in flow totals and is audited."""

    DATA = "data"
    UNSELECTED = "unselected"
    """Data that the flow's configuration selects and its running connector does not."""
    HEARTBEATS = "heartbeats"
    CANARY = "canary"


@dataclass(frozen=True, slots=True)
class TopicPair:
    """A replicated topic by its names on both sides."""

    source: str
    target: str
    """Empty if transforms of the connector rename the copy in a way that is not known, or give
    several copies one name."""
    role: TopicRole
    may_drop: bool = False
    """Whether transforms of the connector may drop records of the topic."""


def replication_policy(
    flow: FlowConfig, version: KafkaVersion = DEFAULT_VERSION
) -> ReplicationPolicy:
    """Return the replication policy of the flow's configuration."""
    settings = flow.policy
    names = (settings.separator, settings.internal_separator, version)
    if settings.kind is PolicyKind.IDENTITY:
        return IdentityPolicy(flow.flow.source, *names)
    return DefaultPolicy(*names)


def replicated_topics(
    flow: FlowConfig,
    source_topics: Iterable[str],
    canary_topic: str | None = None,
    version: KafkaVersion = DEFAULT_VERSION,
    running: NameFilter | None = None,
) -> tuple[TopicPair, ...]:
    """Select the topics of a flow as Kafka's `MirrorSourceConnector.shouldReplicateTopic` does.

    MirrorMaker 2 replicates heartbeats topics whatever the filter, and never internal topics or
    topics that came from the target. *running* is the topic filter of the running connector, if it
    is known.
    """
    policy = replication_policy(flow, version)
    transforms = RecordTransforms(flow.transforms)
    topic_filter = TopicFilter(flow.topics, flow.topics_exclude)
    replicates_heartbeats = flow.engine is Engine.MIRRORMAKER2
    pairs = []
    for topic in sorted(source_topics):
        heartbeats = policy.is_heartbeats_topic(topic)
        if not (replicates_heartbeats if heartbeats else topic_filter.matches(topic)):
            continue
        if policy.is_internal_topic(topic):
            continue
        if policy.is_cycle(topic, flow.flow.target, flow.flow.source):
            continue
        role = TopicRole.DATA
        if heartbeats:
            role = TopicRole.HEARTBEATS
        elif topic == canary_topic:
            role = TopicRole.CANARY
        elif running is not None and not running.matches(topic):
            role = TopicRole.UNSELECTED
        name, may_drop = transforms.effect(policy.remote_topic(flow.flow.source, topic))
        pairs.append(TopicPair(topic, name or "", role, may_drop))
    if not transforms.names:
        return tuple(pairs)
    copies = Counter(pair.target for pair in pairs)
    return tuple(pair if copies[pair.target] == 1 else replace(pair, target="") for pair in pairs)
