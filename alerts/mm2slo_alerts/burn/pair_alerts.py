"""One alert per pair of windows.

It fires when both windows burn faster than the pair's factor and the long one holds enough bad
events, so that a single one never alerts. The factor is share * window / long, computed from the
recorded window of the objective, so that one rule serves all objectives. For short windows it is at
least MIN_FACTOR, so that no flow alerts whose budget lasts.

Pairs that page require an objective with max_severity page; for others the slow pair reports an
outage. A pair whose factor times the budget is 1 or more can never fire, since error ratios are at
most 1; `notices` lists such pairs when the rules are generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.burn.burn_annotations import burn_annotations
from mm2slo_alerts.burn.series_expressions import ON, WINDOW_NAMES, window_value, with_owner
from mm2slo_alerts.rule_model import AlertRule
from mm2slo_core.catalogue import BAD_INCREASE, BAD_SUM, BURN, DIRECT_WINDOWS, OBJECTIVE_WINDOW
from mm2slo_core.objectives import Severity
from mm2slo_core.objectives.traffic_limits import dead_pairs, threshold
from mm2slo_core.objectives.window_pairs import MIN_FACTOR, MIN_WINDOW
from mm2slo_core.promql import number, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_alerts.rule_model import Links, Scale
    from mm2slo_core.objectives import ObjectiveRule, WindowPair

ALERTS: Final[Mapping[str, str]] = {
    "fast": "MM2ErrorBudgetBurnFast",
    "steady": "MM2ErrorBudgetBurnSteady",
    "slow": "MM2ErrorBudgetBurnSlow",
    "creeping": "MM2ErrorBudgetBurnCreeping",
}
"""Alert by the name of the pair."""


def burning(pair: WindowPair, links: Links, scale: Scale) -> AlertRule:
    """Return the alert of *pair*, which is not scaled yet."""
    name = ALERTS[pair.name]
    long, short = WINDOW_NAMES[pair.long], WINDOW_NAMES[pair.short]
    return AlertRule(
        alert=name,
        expr=_expr(pair, scale),
        hold=scale(pair.hold),
        keep=scale(pair.keep),
        labels={"severity": pair.severity.value, "long": long, "short": short},
        annotations={**burn_annotations(pair, scale), **links.annotations(name)},
    )


def notices(rules: Iterable[ObjectiveRule]) -> tuple[str, ...]:
    """Return a sentence for each pair that can never fire for one of the objectives *rules*."""
    return tuple(
        f"{ALERTS[pair.name]} can never fire for {rule.key.sli.value} ({rule.key.tier}) of "
        f"{', '.join(rule.flows)}: with a target of {number(rule.target)} over "
        f"{number(rule.window / 86_400)} days it needs an error ratio above "
        f"{number(threshold(pair, rule.target, rule.window))}"
        for rule in rules
        for pair in dead_pairs(rule)
    )


def _expr(pair: WindowPair, scale: Scale) -> str:
    window = select(OBJECTIVE_WINDOW)
    rate = f"{window} * {number(pair.share)} / {number(scale(pair.long))}"
    if pair.share * MIN_WINDOW / pair.long < MIN_FACTOR:
        rate = f"clamp_min({rate}, {number(MIN_FACTOR)})"
    factor = f"> {ON} {rate}"
    family = BAD_INCREASE if WINDOW_NAMES[pair.long] in DIRECT_WINDOWS else BAD_SUM
    conditions = (
        f"  {window_value(BURN, pair.long, scale)} {factor}\n"
        f"  and {ON} ({window_value(BURN, pair.short, scale)} {factor})\n"
        f"  and {ON} {window_value(family, pair.long, scale)} >= {pair.min_bad}"
    )
    return with_owner(conditions, pair.severity if pair.severity is Severity.PAGE else None)
