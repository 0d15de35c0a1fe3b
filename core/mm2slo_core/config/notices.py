"""Notices: what a valid configuration does not measure, and objectives with limited alerts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.config.durations import format_duration
from mm2slo_core.config.flow_config import FlowConfig, PolicyKind
from mm2slo_core.java_client_settings import java_settings
from mm2slo_core.objectives.default_objectives import relaxed_defaults
from mm2slo_core.objectives.objective import DAY, resolve
from mm2slo_core.objectives.quantity_text import percent_text
from mm2slo_core.objectives.traffic_limits import dead_pairs, threshold
from mm2slo_core.sli_counters import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.config_model import Config
    from mm2slo_core.sli_counters import SliKey

RETENTION: Final = 35 * DAY
"""Retention of the shipped Prometheus configuration."""
_NEEDS_MIRRORMAKER: Final = (
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


def unapplied_client_settings(config: Config) -> Iterator[str]:
    """One sentence for each cluster with settings that the audit cannot apply."""
    for alias, cluster in config.clusters.items():
        _known, unknown = java_settings(cluster.client)
        if unknown:
            yield (
                f"clusters.{alias}.client: {', '.join(unknown)} not applied by the audit, because "
                "Kafka's Java client has no equivalent"
            )


def _notices(config: Config) -> Iterator[str]:
    yield from unapplied_client_settings(config)
    if config.exporter.read_only:
        yield (
            "exporter.read_only: no canary, state and timeline are written; availability is "
            "measured by MirrorMaker 2's heartbeats; completeness, uniqueness, order and affinity "
            "are not measured; certain losses stay pending; verdicts do not survive a restart"
        )
    elif not config.exporter.timeline.enabled:
        yield (
            "exporter.timeline is off: after a restart, lag in seconds is derived from record "
            "timestamps until the new history is long enough"
        )
    yield from _slo_notices(config)
    identity = [flow for flow in config.flows if flow.policy.kind is PolicyKind.IDENTITY]
    for flow in config.flows:
        missing = unavailable(flow)
        if missing:
            yield f"{flow.label}: the engine {flow.engine} does not provide {'; '.join(missing)}"
        elif config.carrier(flow) is CanaryCarrier.OFF and not flow.emit_heartbeats:
            yield f"{flow.label}: availability is not measured, by canaries or by heartbeats"
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


def _slo_notices(config: Config) -> Iterator[str]:
    rules = config.objective_rules
    flows_by_notice: dict[str, list[str]] = defaultdict(list)
    for rule in rules:
        dead = dead_pairs(rule)
        if dead:
            shares = ", ".join(
                f"{pair.name} (error ratio above {threshold(pair, rule.target, rule.window):.0%})"
                for pair in dead
            )
            flows_by_notice[
                f"{_indicator(rule.key)} at {percent_text(rule.target)}: these window pairs "
                f"cannot fire and are omitted: {shares}"
            ].extend(rule.flows)
    for sentence, flows in flows_by_notice.items():
        yield f"{', '.join(dict.fromkeys(flows))}: {sentence}"
    longest = max((rule.window for rule in rules), default=0.0)
    if longest > RETENTION:
        yield (
            f"slo: Prometheus must retain samples for more than {format_duration(longest)}; "
            f"the shipped configuration retains them for {format_duration(RETENTION)}"
        )
    for relaxed in relaxed_defaults(config.published, config.slo.window):
        # A configured objective replaces the default.
        kept = next(iter(resolve(rules, relaxed.flow, [relaxed.key])), None)
        if kept is None:
            outcome = "has no objective"
        elif kept.target == relaxed.target:
            outcome = f"has the objective {percent_text(kept.target)}"
        else:
            continue
        yield (
            f"{relaxed.flow.label}: {_indicator(relaxed.key)} {outcome} instead of the default "
            f"{percent_text(relaxed.wanted)}, which one bad event would breach at this event rate"
        )


def _indicator(key: SliKey) -> str:
    """*key* as text: `latency 10s`, `availability`."""
    return str(key.sli) if key.tier == ALL else f"{key.sli} {key.tier}"
