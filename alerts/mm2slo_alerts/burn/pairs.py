"""One alert per pair of windows.

It fires when both windows burn faster than the pair's factor, and the long one holds enough bad
events that one alone never alerts. The factor is share * window / long, from the objective's own
window as it is recorded, so one rule serves all objectives; of short windows it is LEAST_FACTOR,
so that no flow alerts whose budget lasts.

Pairs that page ask for objectives whose gravest severity is a page: an objective that allows
tickets only has no fast and no steady alert, and its outage is told by the slow pair. A pair whose
factor times the budget is 1 or more can never fire, since error ratios end at 1: the comparison
is simply false, and `notices` tells of it when the rules are generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.burn.reading import ON, WINDOW_NAMES, of_window, told_to
from mm2slo_alerts.burn.texts import burn_texts
from mm2slo_alerts.model import AlertRule
from mm2slo_core.catalogue import BAD_INCREASE, BAD_SUM, BURN, DIRECT_WINDOWS, OBJECTIVE_WINDOW
from mm2slo_core.objectives import Severity
from mm2slo_core.objectives.pairs import LEAST_FACTOR, SHORTEST_WINDOW
from mm2slo_core.objectives.traffic import dead_pairs, threshold
from mm2slo_core.promql import number, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_alerts.model import Links, Scale
    from mm2slo_core.objectives import BurnPair, ObjectiveRule

ALERTS: Final[Mapping[str, str]] = {
    "fast": "MM2ErrorBudgetBurnFast",
    "steady": "MM2ErrorBudgetBurnSteady",
    "slow": "MM2ErrorBudgetBurnSlow",
    "creeping": "MM2ErrorBudgetBurnCreeping",
}
"""The alert of each pair, by the pair's name."""


def burning(pair: BurnPair, links: Links, scale: Scale) -> AlertRule:
    """The alert of *pair*, which is that of production."""
    name = ALERTS[pair.name]
    long, short = WINDOW_NAMES[pair.long], WINDOW_NAMES[pair.short]
    return AlertRule(
        alert=name,
        expr=_expr(pair, scale),
        hold=scale(pair.hold),
        keep=scale(pair.keep),
        labels={"severity": pair.severity.value, "long": long, "short": short},
        annotations={**burn_texts(pair, scale), **links.annotations(name)},
    )


def notices(rules: Iterable[ObjectiveRule]) -> tuple[str, ...]:
    """A sentence for each pair that cannot fire for one of the objectives *rules*."""
    return tuple(
        f"{ALERTS[pair.name]} can never fire for {rule.key.sli.value} ({rule.key.tier}) of "
        f"{', '.join(rule.flows)}: with a target of {number(rule.target)} over "
        f"{number(rule.window / 86_400)} days it needs an error ratio above "
        f"{number(threshold(pair, rule.target, rule.window))}"
        for rule in rules
        for pair in dead_pairs(rule)
    )


def _expr(pair: BurnPair, scale: Scale) -> str:
    window = select(OBJECTIVE_WINDOW)
    rate = f"{window} * {number(pair.share)} / {number(scale(pair.long))}"
    if pair.share * SHORTEST_WINDOW / pair.long < LEAST_FACTOR:
        rate = f"clamp_min({rate}, {number(LEAST_FACTOR)})"
    factor = f"> {ON} {rate}"
    family = BAD_INCREASE if WINDOW_NAMES[pair.long] in DIRECT_WINDOWS else BAD_SUM
    conditions = (
        f"  {of_window(BURN, pair.long, scale)} {factor}\n"
        f"  and {ON} ({of_window(BURN, pair.short, scale)} {factor})\n"
        f"  and {ON} {of_window(family, pair.long, scale)} >= {pair.min_bad}"
    )
    return told_to(conditions, pair.severity if pair.severity is Severity.PAGE else None)
