"""The topics and groups of a flow and their copies, by its replication policy and filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from mm2slo_core.config.exporter_settings import CanaryCarrier, FlowSettings, RootSettings
from mm2slo_core.mm2_config.running_settings import (
    RunningConnectors,
    observed_flow,
    running_topic_filter,
)
from mm2slo_core.replication_policy import InternalTopics, internal_topics
from mm2slo_core.topic_filters import GroupFilter, RecordTransforms
from mm2slo_core.topic_selection import TopicPair, replicated_topics, replication_policy
from mm2slo_core.topology import TopicPartition, shared_partition
from mm2slo_exporter.canary.canary_messages import CanarySpec

_UNKNOWN: Final = RunningConnectors()
_RESTORE_SECONDS: Final = 3600.0


class FlowPolicies:
    """Selects a flow's topics and groups, and names its internal topics."""

    def __init__(self, flow: FlowSettings, opposite: FlowSettings | None = None) -> None:
        """*opposite* is the configured flow of the other direction, which writes heartbeats."""
        self.flow = flow
        self._policy = replication_policy(flow)
        self._groups = GroupFilter(flow.groups, flow.groups_exclude)
        # Also if this process sends none: canaries of another one are no data either.
        own_topic = flow.canary.carrier is CanaryCarrier.TOPIC
        self._canary_topic = flow.canary.topic if own_topic else None
        self._planned: tuple[object, object, FlowPlan] = (None, None, FlowPlan())
        self._transforms = RecordTransforms(flow.transforms)
        self.internal: InternalTopics = internal_topics(
            flow.flow, self._policy, flow.offset_syncs_location
        )
        writer = (opposite or flow).connect
        self.heartbeat_connector: str = writer.heartbeat_connector
        configs = opposite.connect.configs_topic if opposite else None
        self.heartbeat_configs: str = configs or self.internal.heartbeat_configs.topic

    def copy_name(self, topic: str) -> str | None:
        """The name of the copy of *topic*; None if transforms rename it in an unknown way."""
        remote = self._policy.remote_topic(self.flow.flow.source, topic)
        return self._transforms.effect(remote).name

    def plan(self, source_topics: Iterable[str], running: RunningConnectors = _UNKNOWN) -> FlowPlan:
        """The replicated topics; computed again only when topics or connectors were read again."""
        connector = running.by_name.get(self.flow.connect.source_connector)
        topics_before, connector_before, plan = self._planned
        if topics_before is not source_topics or connector_before is not connector:
            flow = observed_flow(self.flow, running)
            self._transforms = RecordTransforms(flow.transforms)
            plan = FlowPlan(
                replicated_topics(
                    flow,
                    source_topics,
                    self._canary_topic,
                    running=running_topic_filter(flow, running),
                )
            )
            self._planned = (source_topics, connector, plan)
        return plan

    def wants_group(self, group: str) -> bool:
        """Whether MirrorMaker 2 translates the offsets of *group*."""
        return self.flow.by_mirrormaker and self._groups.matches(group)


def canary_spec(config: RootSettings, policies: FlowPolicies) -> CanarySpec:
    """The settings of one flow for the canary process."""
    flow = policies.flow
    source, target = flow.flow.source, flow.flow.target
    carrier = config.carrier(flow)
    own = carrier is CanaryCarrier.TOPIC
    heartbeats = policies.internal.heartbeats.topic
    source_topic = flow.canary.topic if own else heartbeats
    copy = policies.copy_name(source_topic)
    return CanarySpec(
        flow=flow.label,
        instance=config.exporter.instance,
        source_alias=source,
        target_alias=target,
        source_client=config.clusters[source].librdkafka_properties(),
        target_client=config.clusters[target].librdkafka_properties(),
        heartbeats_topic_on_target=policies.copy_name(heartbeats) if flow.by_mirrormaker else None,
        carrier=(CanaryCarrier.OFF if copy is None else carrier).value,
        source_topic=source_topic,
        target_topic=copy or "",
        interval_seconds=flow.canary.interval,
        restore_seconds=_RESTORE_SECONDS,
    )


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """The topics that MirrorMaker 2 replicates for one flow, by its selection rules."""

    pairs: tuple[TopicPair, ...] = ()
    _partitions: dict[tuple[str, int], tuple[TopicPartition, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def partitions(self, topic: str, count: int) -> tuple[TopicPartition, ...]:
        """The partitions of a topic on one side."""
        found = self._partitions.get((topic, count))
        if found is None:
            found = tuple(shared_partition(topic, number) for number in range(count))
            self._partitions[topic, count] = found
        return found

    def source_partitions(self, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """All partitions of the source topics; *counts* are the source's partition counts."""
        topics = (pair.source for pair in self.pairs)
        return tuple(chain.from_iterable(self.partitions(t, counts.get(t, 0)) for t in topics))

    def target_partitions(self, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """All partitions of the existing copies; *counts* are the target's partition counts."""
        topics = (pair.target for pair in self.pairs)
        return tuple(chain.from_iterable(self.partitions(t, counts.get(t, 0)) for t in topics))


class PartitionCache:
    """One side's partitions, computed again only when plan or counts were replaced."""

    def __init__(
        self, compute: Callable[[FlowPlan, Mapping[str, int]], tuple[TopicPartition, ...]]
    ) -> None:
        self._compute = compute
        self._cached_for: tuple[FlowPlan, Mapping[str, int]] | None = None
        self._partitions: tuple[TopicPartition, ...] = ()

    def get(self, plan: FlowPlan, counts: Mapping[str, int]) -> tuple[TopicPartition, ...]:
        """The partitions of *plan* by *counts*; neither may be changed in place."""
        cached_for = self._cached_for
        if cached_for is None or cached_for[0] is not plan or cached_for[1] is not counts:
            self._partitions = self._compute(plan, counts)
            self._cached_for = (plan, counts)
        return self._partitions
