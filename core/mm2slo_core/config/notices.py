"""Notices: what a valid configuration does not measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.config.flow_config import FlowConfig, PolicyKind
from mm2slo_core.config.slo_notices import slo_notices
from mm2slo_core.java_client_settings import java_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.config_model import Config

_NEEDS_MIRRORMAKER = (
    "MirrorMaker 2's heartbeats, offset syncs, checkpoints and connector states",
    "replicated position, lag and data freshness, stalled partitions",
    "retention headroom and records lost to retention",
    "failover readiness of consumer groups",
)


def unavailable(flow: FlowConfig) -> tuple[str, ...]:
    """What cannot be measured for *flow* because of its engine; usually nothing."""
    return () if flow.by_mirrormaker else _NEEDS_MIRRORMAKER


def notices(config: Config) -> tuple[str, ...]:
    """One sentence for each limitation of this configuration."""
    return tuple(_notices(config))


def _notices(config: Config) -> Iterator[str]:
    for alias, cluster in config.clusters.items():
        _known, unknown = java_settings(cluster.client)
        if unknown:
            yield (
                f"clusters.{alias}.client: {', '.join(unknown)} not applied by the audit, because "
                "Kafka's Java client has no equivalent"
            )
    if config.exporter.read_only:
        yield (
            "exporter.read_only: no canary and no timeline are written; availability is measured "
            "by MirrorMaker 2's heartbeats; completeness, uniqueness, order and affinity are not "
            "measured"
        )
    elif not config.exporter.timeline.enabled:
        yield (
            "exporter.timeline is off: after a restart, lag in seconds is derived from record "
            "timestamps until the new history is long enough"
        )
    yield from slo_notices(config)
    identity = [flow for flow in config.flows if flow.policy.kind is PolicyKind.IDENTITY]
    for flow in config.flows:
        missing = unavailable(flow)
        if missing:
            yield f"{flow.label}: the engine {flow.engine} does not provide {'; '.join(missing)}"
        elif flow.canary.carrier is CanaryCarrier.OFF and not config.exporter.read_only:
            yield f"{flow.label}: no canary is sent; availability is measured by heartbeats"
        feeders = sorted(other.label for other in identity if other.flow.target == flow.flow.target)
        if flow in identity and len(feeders) > 1:
            yield (
                f"{flow.label}: {', '.join(feeders)} may write to the same topics under the "
                "identity policy; if they do, positions are as old as the last offset commit"
            )
        if flow in identity and config.graph.active_active & {flow.flow}:
            yield (
                f"{flow.label}: the identity policy does not prevent replication cycles; both "
                "flows must not replicate the same topic"
            )
