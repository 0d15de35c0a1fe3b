"""What valid objectives go without: pairs that cannot fire, defaults that the traffic forbids."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.durations import format_duration
from mm2slo_core.config.shares import format_share
from mm2slo_core.objectives.defaults import relaxed_defaults
from mm2slo_core.objectives.objective import DAY, resolve
from mm2slo_core.objectives.traffic import dead_pairs, threshold
from mm2slo_core.sli import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.model import Config
    from mm2slo_core.sli import SliKey

RETENTION: Final = 35 * DAY
"""What the Prometheus configuration that is shipped keeps."""


def slo_notices(config: Config) -> Iterator[str]:
    """One sentence for each thing."""
    rules = config.objective_rules
    told: dict[str, list[str]] = defaultdict(list)
    for rule in rules:
        dead = dead_pairs(rule)
        if dead:
            shares = ", ".join(
                f"{pair.name} (above {threshold(pair, rule.target, rule.window):.0%} bad)"
                for pair in dead
            )
            told[
                f"{indicator(rule.key)} at {format_share(rule.target)}: these pairs can never fire "
                f"and are left out: {shares}"
            ].extend(rule.flows)
    for sentence, flows in told.items():
        yield f"{', '.join(dict.fromkeys(flows))}: {sentence}"
    longest = max((rule.window for rule in rules), default=0.0)
    if longest > RETENTION:
        yield (
            f"slo: Prometheus must keep samples for more than {format_duration(longest)}; "
            f"the configuration that is shipped says {format_duration(RETENTION)}"
        )
    for relaxed in relaxed_defaults(config.published, config.slo.window):
        # Where an objective is configured, the default does not hold.
        kept = next(iter(resolve(rules, relaxed.flow, [relaxed.key])), None)
        if kept is None:
            outcome = "has no objective"
        elif kept.target == relaxed.target:
            outcome = f"is promised at {format_share(kept.target)}"
        else:
            continue
        yield (
            f"{relaxed.flow.label}: {indicator(relaxed.key)} {outcome} instead of the default "
            f"{format_share(relaxed.wanted)}, which one bad event would breach at its traffic"
        )


def indicator(key: SliKey) -> str:
    """*key* in a sentence: `latency 10s`, `availability`."""
    return str(key.sli) if key.tier == ALL else f"{key.sli} {key.tier}"
