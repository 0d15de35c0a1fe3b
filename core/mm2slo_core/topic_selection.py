"""Which topics of a source cluster a flow copies, and what the copies are called."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mm2slo_core.config.flow_config import Engine, PolicyKind
from mm2slo_core.name_filters import TopicFilter
from mm2slo_core.replication_policy import DefaultPolicy, IdentityPolicy, ReplicationPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.config.flow_config import FlowConfig


class TopicRole(StrEnum):
    """What a replicated topic is for; only `data` counts in flow totals and is audited."""

    DATA = "data"
    HEARTBEATS = "heartbeats"
    CANARY = "canary"


@dataclass(frozen=True, slots=True)
class TopicPair:
    """One replicated topic: its name on the source, its name on the target, and its role."""

    source: str
    target: str
    role: TopicRole


def replication_policy(flow: FlowConfig) -> ReplicationPolicy:
    """How the flow names topics."""
    settings = flow.policy
    if settings.kind is PolicyKind.IDENTITY:
        return IdentityPolicy(flow.flow.source, settings.separator, settings.internal_separator)
    return DefaultPolicy(settings.separator, settings.internal_separator)


def replicated_topics(
    flow: FlowConfig, source_topics: Iterable[str], canary_topic: str | None = None
) -> tuple[TopicPair, ...]:
    """Select the topics of a flow as Kafka's `MirrorSourceConnector.shouldReplicateTopic` does.

    Heartbeats topics are copied by MirrorMaker 2 whatever the filter says; internal topics and
    topics that came from the target never are.
    """
    policy = replication_policy(flow)
    chosen = TopicFilter(flow.topics, flow.topics_exclude)
    copies_heartbeats = flow.engine is Engine.MIRRORMAKER2
    pairs = []
    for topic in sorted(source_topics):
        heartbeats = policy.is_heartbeats_topic(topic)
        if not (copies_heartbeats if heartbeats else chosen.matches(topic)):
            continue
        if policy.is_internal_topic(topic) or policy.is_cycle(topic, flow.flow.target):
            continue
        role = TopicRole.DATA
        if heartbeats:
            role = TopicRole.HEARTBEATS
        elif topic == canary_topic:
            role = TopicRole.CANARY
        pairs.append(TopicPair(topic, policy.remote_topic(flow.flow.source, topic), role))
    return tuple(pairs)
