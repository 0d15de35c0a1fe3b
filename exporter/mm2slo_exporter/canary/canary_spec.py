"""The settings of one flow for the canary process; picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_core.config.canary_config import CanaryCarrier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.config import Config
    from mm2slo_exporter.service.flow_policies import FlowPolicies

_RESTORE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class CanarySpec:
    """The settings of one flow. Client properties contain secrets and are never printed."""

    flow: str
    instance: str | None
    """Name of this replica in its canaries; None: by a leased number."""
    source_alias: str
    target_alias: str
    source_client: Mapping[str, str] = field(repr=False)
    target_client: Mapping[str, str] = field(repr=False)
    heartbeats_topic_on_target: str | None
    """None: the flow's engine has no heartbeats, or the name of their copy is not known."""
    carrier: str
    """`heartbeats`, `topic`, or `off`; with `off`, nothing is sent and heartbeats are only read."""
    source_topic: str
    target_topic: str
    interval_seconds: float
    restore_seconds: float
    """How far back canaries of an earlier process are read at start."""


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
