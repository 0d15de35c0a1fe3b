"""Notices about objectives: window pairs that cannot fire, and lowered defaults."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.durations import format_duration
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


def slo_notices(config: Config) -> Iterator[str]:
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
                f"{indicator(rule.key)} at {percent_text(rule.target)}: these window pairs "
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
            f"{relaxed.flow.label}: {indicator(relaxed.key)} {outcome} instead of the default "
            f"{percent_text(relaxed.wanted)}, which one bad event would breach at this event rate"
        )


def indicator(key: SliKey) -> str:
    """*key* as text: `latency 10s`, `availability`."""
    return str(key.sli) if key.tier == ALL else f"{key.sli} {key.tier}"
