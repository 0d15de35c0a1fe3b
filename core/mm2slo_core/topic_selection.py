"""The topics that a flow replicates, and drift between a topic and its copy."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from mm2slo_core.config.exporter_settings import FlowSettings, PolicyKind
from mm2slo_core.replication_policy import (
    DEFAULT_VERSION,
    DefaultPolicy,
    IdentityPolicy,
    KafkaVersion,
    ReplicationPolicy,
    internal_topics,
)
from mm2slo_core.topic_filters import NameFilter, RecordTransforms, TopicFilter


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
    flow: FlowSettings, version: KafkaVersion = DEFAULT_VERSION
) -> ReplicationPolicy:
    """The policy of *flow*, as MirrorMaker 2 of *version* applies it."""
    settings = flow.policy
    names = (settings.separator, settings.internal_separator, version)
    if settings.kind is PolicyKind.IDENTITY:
        return IdentityPolicy(*names, source_alias=flow.flow.source)
    return DefaultPolicy(*names)


def connect_offsets_topic(flow: FlowSettings) -> str:
    """The topic with the positions of *flow*, on its target: as configured, or dedicated mode's."""
    usual = internal_topics(flow.flow, replication_policy(flow)).connect_offsets
    return flow.connect.offsets_topic or usual.topic


def connect_configs_topic(flow: FlowSettings) -> str:
    """The topic with the connectors of *flow*, on its target, likewise."""
    usual = internal_topics(flow.flow, replication_policy(flow)).connect_configs
    return flow.connect.configs_topic or usual.topic


def replicated_topics(
    flow: FlowSettings,
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
    pairs = []
    for topic in sorted(source_topics):
        heartbeats = policy.is_heartbeats_topic(topic)
        if not (flow.by_mirrormaker if heartbeats else topic_filter.matches(topic)):
            continue
        # The filter cannot select what the policy holds back (MirrorSourceConnector).
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
    # A router may give several topics one name (KIP-66, `RegexRouter`). Then nothing on the target
    # says which topic a record came from, so positions and audits of these topics are impossible.
    copies = Counter(pair.target for pair in pairs)
    return tuple(pair if copies[pair.target] == 1 else replace(pair, target="") for pair in pairs)


class ConfigDrift(NamedTuple):
    """A topic setting that differs; None: not set on the topic, so the default applies."""

    name: str
    source: str | None
    target: str | None


class SyncedSettings:
    """The topic settings that MM2 syncs, by its `config.properties.exclude`.

    Source: `DefaultConfigPropertyFilter`: Java regular expressions that match the whole name. With
    `use.defaults.from=target`, the default, MM2 copies settings of the source topic and removes
    others from the copy (KIP-894, 3.5); so only settings set on the topics are compared.
    Raises ValueError for an invalid expression.
    """

    def __init__(self, exclude: Sequence[str]) -> None:
        self._excluded = NameFilter(tuple(exclude), ())

    def is_synced(self, name: str) -> bool:
        return not self._excluded.matches(name)

    def drift(
        self, source: Mapping[str, str], target: Mapping[str, str]
    ) -> tuple[ConfigDrift, ...]:
        """Return the differences between the settings of a topic and of its copy."""
        return tuple(
            ConfigDrift(name, source.get(name), target.get(name))
            for name in sorted(source.keys() | target.keys())
            if source.get(name) != target.get(name) and self.is_synced(name)
        )


@dataclass(slots=True)
class TopicEpochs:
    """Detects re-creation of one topic: another topic id under the same name (KIP-516)."""

    recreations: int = 0
    topic_id: str | None = None

    def observe_id(self, topic_id: str | None) -> bool:
        """Record the topic id; True if the topic was deleted and created again.

        None: the broker reports no id, or the topic does not exist. A topic that reappears with
        another id was re-created as well.
        """
        if topic_id is None:
            return False
        recreated = self.topic_id not in (None, topic_id)
        self.recreations += recreated
        self.topic_id = topic_id
        return recreated
