"""Objectives as series, and the intervals at which series are recorded.

Other rules need neither targets nor a list of flows: the event counters define which flows exist; a
rule adds the target to 0 times the counter.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from mm2slo_alerts.alert_rules import RecordingRule, Scale
from mm2slo_core.catalogue.flow_metrics import SLI_EVENTS_TOTAL
from mm2slo_core.catalogue.metric import FLOW_LABELS
from mm2slo_core.catalogue.prometheus_series import (
    EVENTS_SUM,
    OBJECTIVE,
    OBJECTIVE_WINDOW,
    WINDOW_SECONDS,
)
from mm2slo_core.catalogue.promql import (
    Matcher,
    aggregate,
    either,
    equal,
    matching,
    number,
    over,
    select,
    unmatching,
)
from mm2slo_core.indicators.sli_counters import SliKey
from mm2slo_core.objectives.objective import ObjectiveRule

_ANY: Final = "*"
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")


def objective_series(rules: Sequence[ObjectiveRule], scale: Scale) -> tuple[RecordingRule, ...]:
    """Return rules that record target and window of each indicator and flow with an objective."""
    return (*_objectives(rules, scale), *_windows(rules, scale))


def flow_pattern(patterns: Sequence[str]) -> str:
    """Translate patterns of flows (`*` any text, `?` any character) to an RE2 expression.

    Prometheus anchors it at both ends.
    """
    return "|".join("".join(map(_translated, pattern)) for pattern in patterns)


def _translated(character: str) -> str:
    if character == "*":
        return ".*"
    if character == "?":
        return "."
    return f"\\{character}" if character in _SPECIAL else character


def _objectives(rules: Sequence[ObjectiveRule], scale: Scale) -> Iterator[RecordingRule]:
    """One rule per set of labels: two that record one series would make its samples stale."""
    branches: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for rule, matchers in _reachable(rules):
        labels = {
            **_key_labels(rule.key),
            "severity": rule.max_severity.value,
            "owner": rule.owner,
            "channel": rule.channel,
        }
        given = tuple((name, value) for name, value in labels.items() if value)
        branches.setdefault(given, []).append(_known(matchers, rule.target, scale))
    for given, exprs in branches.items():
        yield RecordingRule(record=OBJECTIVE.name, expr="\nor\n".join(exprs), labels=dict(given))


def _known(matchers: Sequence[Matcher], target: float, scale: Scale) -> str:
    """*target* for each flow with counters now or within the last day.

    The sum over a day exists while one of its steps does, and needs one sample instead of 288.
    """
    now = select(SLI_EVENTS_TOTAL, *matchers)
    lately = over("last_over_time", EVENTS_SUM[REMEMBERED], scale(LATE_STEP), *matchers)
    flows = aggregate("max", either(now, lately), FLOW_LABELS)
    return f"0 * {flows} + {number(target)}"


def _windows(rules: Sequence[ObjectiveRule], scale: Scale) -> Iterator[RecordingRule]:
    """One rule per indicator; flows are distinguished only if their windows differ."""
    branches: dict[SliKey, dict[str, None]] = {}
    windows: dict[SliKey, set[float]] = {}
    for rule in rules:
        windows.setdefault(rule.key, set()).add(rule.window)
    for rule, matchers in _reachable(rules):
        chosen = matchers if len(windows[rule.key]) > 1 else _key_matchers(rule.key)
        flows = aggregate("max", select(OBJECTIVE, *chosen), FLOW_LABELS)
        text = f"0 * {flows} + {number(scale(rule.window))}"
        branches.setdefault(rule.key, {})[text] = None
    for key, exprs in branches.items():
        yield RecordingRule(
            record=OBJECTIVE_WINDOW.name, expr="\nor\n".join(exprs), labels=_key_labels(key)
        )


def _reachable(
    rules: Sequence[ObjectiveRule],
) -> Iterator[tuple[ObjectiveRule, tuple[Matcher, ...]]]:
    """Each rule that is first for some flow, with its matchers."""
    taken: dict[SliKey, list[str]] = {}
    for rule in rules:
        earlier = taken.setdefault(rule.key, [])
        if _ANY in earlier:
            continue
        matchers = [*_key_matchers(rule.key)]
        if _ANY not in rule.flows:
            matchers.append(matching("flow", flow_pattern(rule.flows)))
        if earlier:
            matchers.append(unmatching("flow", flow_pattern(earlier)))
        yield rule, tuple(matchers)
        earlier.extend(rule.flows)


def _key_labels(key: SliKey) -> dict[str, str]:
    return {"sli": key.sli.value, "tier": key.tier}


def _key_matchers(key: SliKey) -> tuple[Matcher, ...]:
    return tuple(equal(label, value) for label, value in _key_labels(key).items())


EVENTS_INTERVAL: Final = 30.0
"""Seconds between two evaluations of the short windows."""

STEP: Final = 300.0
"""Seconds: length of a step, and time between two."""

LATE_STEP: Final = 2.5 * STEP
"""The range in which the last value of a series that is recorded with each step is found: two
steps, because one evaluation may be late, and half a step for its delivery."""

REMEMBERED: Final = "1d"
"""How long an objective outlives its counters: a budget must not disappear with the exporter, and a
removed flow must not be missed forever."""


def seconds(window: str) -> float:
    return WINDOW_SECONDS[window]


def samples_within(length: float, interval: float, scale: Scale) -> float:
    """Return a range (seconds) with exactly the samples of the last *length*, one per *interval*.

    It is half an interval shorter: Prometheus 2 includes a sample on the range's older edge,
    Prometheus 3 does not ([1h] of samples every 5 minutes are 13 or 12).
    """
    return scale(length) - scale(interval) / 2
