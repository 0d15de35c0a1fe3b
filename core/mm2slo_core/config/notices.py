"""What a valid configuration gives up: said once, so that a missing figure is no surprise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.canary import CanaryCarrier
from mm2slo_core.config.flow import FlowConfig, PolicyKind
from mm2slo_core.config.slo_notices import slo_notices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.model import Config

_NEEDS_MIRRORMAKER = (
    "MirrorMaker 2's heartbeats, offset syncs, checkpoints and connector states",
    "replicated position, lag and data freshness, stalled partitions",
    "retention headroom and records lost to retention",
    "failover readiness of consumer groups",
)


def unavailable(flow: FlowConfig) -> tuple[str, ...]:
    """What cannot be told of *flow*, because its engine leaves no such traces; often nothing."""
    return () if flow.by_mirrormaker else _NEEDS_MIRRORMAKER


def notices(config: Config) -> tuple[str, ...]:
    """One sentence for each thing that this configuration goes without."""
    return tuple(_notices(config))


def _notices(config: Config) -> Iterator[str]:
    if config.exporter.read_only:
        yield (
            "exporter.read_only: no canary and no timeline are written; availability comes from "
            "MirrorMaker 2's heartbeats, completeness, uniqueness, order and affinity are left out"
        )
    elif not config.exporter.timeline.enabled:
        yield (
            "exporter.timeline is off: after a restart, lag in seconds is read from records until "
            "the new history reaches back far enough"
        )
    yield from slo_notices(config)
    identity = [flow for flow in config.flows if flow.policy.kind is PolicyKind.IDENTITY]
    for flow in config.flows:
        gone = unavailable(flow)
        if gone:
            yield f"{flow.label}: the engine {flow.engine} leaves out {'; '.join(gone)}"
        elif flow.canary.carrier is CanaryCarrier.OFF and not config.exporter.read_only:
            yield f"{flow.label}: no canary is sent; availability comes from heartbeats"
        feeders = sorted(other.label for other in identity if other.flow.target == flow.flow.target)
        if flow in identity and len(feeders) > 1:
            yield (
                f"{flow.label}: {', '.join(feeders)} may write the same topics under the identity "
                "policy; where they do, positions are as old as the last offset commit"
            )
        if flow in identity and config.graph.active_active & {flow.flow}:
            yield (
                f"{flow.label}: the identity policy cannot stop records from going back to where "
                "they came from; the two flows must not share a topic"
            )
