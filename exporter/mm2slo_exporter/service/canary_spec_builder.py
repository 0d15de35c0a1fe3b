"""Builds the canary settings of a flow from the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_exporter.canary.canary_spec import CanarySpec

if TYPE_CHECKING:
    from mm2slo_core.config import Config
    from mm2slo_exporter.service.flow_policies import FlowPolicies

_RESTORE_SECONDS = 3600.0


def canary_spec(config: Config, policies: FlowPolicies) -> CanarySpec:
    """The settings of one flow for the canary process."""
    flow = policies.flow
    source, target = flow.flow.source, flow.flow.target
    carrier = config.carrier(flow)
    own = carrier is CanaryCarrier.TOPIC
    source_topic = flow.canary.topic if own else policies.internal.heartbeats.topic
    return CanarySpec(
        flow=flow.label,
        instance=config.exporter.instance,
        source_alias=source,
        target_alias=target,
        source_client=config.clusters[source].librdkafka_properties(),
        target_client=config.clusters[target].librdkafka_properties(),
        heartbeats_topic_on_target=policies.internal.remote_heartbeats.topic
        if flow.by_mirrormaker
        else None,
        carrier=carrier.value,
        source_topic=source_topic,
        target_topic=policies.remote_topic(source_topic),
        interval_seconds=flow.canary.interval,
        restore_seconds=_RESTORE_SECONDS,
    )
