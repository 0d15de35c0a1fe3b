"""The replication policy and filters of a flow, from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.internal_topics import internal_topics
from mm2slo_core.mm2_config.observed_settings import (
    RunningConnectors,
    observed_flow,
    running_topic_filter,
)
from mm2slo_core.name_filters import GroupFilter
from mm2slo_core.record_transforms import RecordTransforms
from mm2slo_core.topic_selection import replicated_topics, replication_policy
from mm2slo_exporter.canary.canary_spec import CanarySpec
from mm2slo_exporter.flow_plan import FlowPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.config import Config
    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_core.internal_topics import InternalTopics

_UNKNOWN: Final = RunningConnectors()
_RESTORE_SECONDS: Final = 3600.0


class FlowPolicies:
    """Selects a flow's topics and groups, and names its internal topics."""

    def __init__(
        self, flow: FlowConfig, carrier: CanaryCarrier, opposite: FlowConfig | None = None
    ) -> None:
        """*opposite* is the configured flow of the other direction, which writes heartbeats."""
        self.flow = flow
        self._policy = replication_policy(flow)
        self._groups = GroupFilter(flow.groups, flow.groups_exclude)
        self._canary_topic = flow.canary.topic if carrier is CanaryCarrier.TOPIC else None
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


def canary_spec(config: Config, policies: FlowPolicies) -> CanarySpec:
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
