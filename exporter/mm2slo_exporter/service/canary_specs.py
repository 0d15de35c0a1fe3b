"""From the configuration to what the canary process has to know of each flow."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from mm2slo_core.config.canary import CanaryCarrier
from mm2slo_exporter.canary.spec import CanarySpec

if TYPE_CHECKING:
    from mm2slo_core.config import Config
    from mm2slo_exporter.service.policies import FlowRulebook

_RESTORE_SECONDS = 3600.0


def canary_spec(config: Config, rulebook: FlowRulebook) -> CanarySpec:
    """One flow as the canary process serves it."""
    flow = rulebook.flow
    source, target = flow.flow.source, flow.flow.target
    carrier = config.carrier(flow)
    own = carrier is CanaryCarrier.TOPIC
    source_topic = flow.canary.topic if own else rulebook.internal.heartbeats.topic
    return CanarySpec(
        flow=flow.label,
        instance=config.exporter.instance
        or f"{socket.gethostname()}:{config.exporter.listen.port}",
        source_alias=source,
        target_alias=target,
        source_client=config.clusters[source].librdkafka_properties(),
        target_client=config.clusters[target].librdkafka_properties(),
        heartbeats_topic_on_target=rulebook.internal.remote_heartbeats.topic
        if flow.by_mirrormaker
        else None,
        carrier=carrier.value,
        source_topic=source_topic,
        target_topic=rulebook.remote(source_topic),
        interval_seconds=flow.canary.interval,
        restore_seconds=_RESTORE_SECONDS,
        target_isolation="read_committed" if flow.exactly_once else "read_uncommitted",
    )
