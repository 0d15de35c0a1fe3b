"""One rule per pair of windows, all with the name `MM2ErrorBudgetBurn`.

It fires when both windows burn faster than the pair's factor and the long one holds enough bad
events, so that a single one never alerts. The factor is share * window / long, computed from the
recorded window of the objective, so that one rule serves all objectives. For short windows it is at
least MIN_FACTOR, so that no flow alerts whose budget lasts.

Pairs that page require an objective with max_severity page; for others the slow pair reports an
outage. All pairs look back: they leave out flows that were stopped, unreachable or recovering
within their short window, or longer, since MM2FlowStopped or MM2ClusterUnreachable has reported
that and may have ended.

A pair whose factor times the budget is 1 or more can never fire, since error ratios are at most 1;
`notices` lists such pairs when the rules are generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.burn.burn_annotations import burn_annotations
from mm2slo_alerts.burn.series_expressions import ON, WINDOW_NAMES, window_value, with_owner
from mm2slo_alerts.causes.cause_expressions import interrupted
from mm2slo_alerts.rule_model import AlertRule, Subject
from mm2slo_core.catalogue import (
    BAD_INCREASE,
    BAD_SUM,
    BURN,
    DIRECT_WINDOWS,
    OBJECTIVE,
    OBJECTIVE_WINDOW,
)
from mm2slo_core.objectives import Severity
from mm2slo_core.objectives.traffic_limits import dead_pairs, threshold
from mm2slo_core.objectives.window_pairs import MIN_FACTOR, MIN_WINDOW
from mm2slo_core.promql import matching, number, select

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_alerts.rule_model import Links, Scale
    from mm2slo_alerts.thresholds import Thresholds
    from mm2slo_core.objectives import ObjectiveRule, WindowPair

ALERT: Final = "MM2ErrorBudgetBurn"
STOP_SLIS: Final = "availability|latency|data_freshness|checkpoint_freshness"
"""Indicators that are bad while a flow is stopped or works off its backlog."""


def burning(pair: WindowPair, limits: Thresholds, links: Links, scale: Scale) -> AlertRule:
    """Return the rule of *pair*, which is not scaled yet; *limits* are."""
    return AlertRule(
        alert=ALERT,
        expr=_expr(pair, limits, scale),
        hold=scale(pair.hold),
        keep=scale(pair.keep),
        labels={"severity": pair.severity.value, "window": WINDOW_NAMES[pair.long]},
        annotations={
            **burn_annotations(pair, scale),
            **links.annotations(ALERT, Subject.OBJECTIVE),
        },
    )


def notices(rules: Iterable[ObjectiveRule]) -> tuple[str, ...]:
    """Return a sentence for each pair that can never fire for one of the objectives *rules*."""
    return tuple(
        f"{ALERT} ({WINDOW_NAMES[pair.long]}) can never fire for {rule.key.sli.value} "
        f"({rule.key.tier}) of "
        f"{', '.join(rule.flows)}: with a target of {number(rule.target)} over "
        f"{number(rule.window / 86_400)} days it needs an error ratio above "
        f"{number(threshold(pair, rule.target, rule.window))}"
        for rule in rules
        for pair in dead_pairs(rule)
    )


def _expr(pair: WindowPair, limits: Thresholds, scale: Scale) -> str:
    window = select(OBJECTIVE_WINDOW)
    rate = f"{window} * {number(pair.share)} / {number(scale(pair.long))}"
    if pair.share * MIN_WINDOW / pair.long < MIN_FACTOR:
        rate = f"clamp_min({rate}, {number(MIN_FACTOR)})"
    factor = f"> {ON} {rate}"
    family = BAD_INCREASE if WINDOW_NAMES[pair.long] in DIRECT_WINDOWS else BAD_SUM
    conditions = (
        f"  {window_value(BURN, pair.long, scale)} {factor}\n"
        f"  and {ON} ({window_value(BURN, pair.short, scale)} {factor})\n"
        f"  and {ON} {window_value(family, pair.long, scale)} >= {pair.min_bad}\n"
        f"  unless {ON} ({select(OBJECTIVE, matching('sli', STOP_SLIS))} and on (flow) "
        f"{interrupted(max(scale(pair.short), limits.outage_memory))})"
    )
    return with_owner(conditions, pair.severity if pair.severity is Severity.PAGE else None)
