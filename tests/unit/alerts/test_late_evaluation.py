"""Rules that read recorded series one evaluation late, as vmalert with remote write does."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from promtool import evaluate, needs_promtool

from mm2slo_alerts import alert_files, burn_alerts, recording_rules
from mm2slo_alerts.alert_rules import NO_LINKS, PRODUCTION, Group, RecordingRule
from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS
from mm2slo_core.catalogue.prometheus_series import RECORDED, SLI_LABELS
from mm2slo_core.catalogue.promql import duration
from mm2slo_core.config.config_model import default_objective_rules
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import ObjectiveRule, Severity

LOOKBACK: Final = 300.0
"""Seconds that Prometheus and vmalert look back for an instant selector by default."""
DELIVERY: Final = 30.0
"""Seconds that a late sample may take to arrive."""
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_READ: Final = re.compile(
    r"(?P<selector>flow:\w+:\w+(?:\{[^}]*\})?)(?:\[(?P<range>\w+)\])?(?: offset (?P<offset>\w+))?"
)


def every_group(rules: Iterable[ObjectiveRule]) -> tuple[Group, ...]:
    flows = alert_files.cause_groups(DEFAULT_THRESHOLDS, NO_LINKS, PRODUCTION)
    return (*recording_rules.recording_groups(tuple(rules)), *burn_alerts.burn_groups(), *flows)


def recorders(groups: Iterable[Group]) -> dict[str, Group]:
    """The group that records each series."""
    return {
        rule.record: group
        for group in groups
        for rule in group.rules
        if isinstance(rule, RecordingRule)
    }


def reads(expr: str) -> Iterator[tuple[str, float]]:
    """Recorded series that *expr* reads, and how far back it looks for a sample (seconds)."""
    for found in _READ.finditer(expr):
        yield _name(found), _seconds(found["range"]) if found["range"] else LOOKBACK


def _name(found: re.Match[str]) -> str:
    return found["selector"].partition("{")[0]


def _seconds(text: str) -> float:
    return sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)([dhms])", text))


def late(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """Each recorded series is read as of the evaluation before, also in its own group."""
    intervals = {name: group.interval for name, group in recorders(groups).items()}

    def delayed(found: re.Match[str]) -> str:
        by = intervals.get(_name(found), 0.0) + _seconds(found["offset"] or "")
        return found[0].partition(" offset ")[0] + (f" offset {duration(by)}" if by else "")

    return tuple(
        replace(
            group,
            rules=tuple(replace(rule, expr=_READ.sub(delayed, rule.expr)) for rule in group.rules),
        )
        for group in groups
    )


def test_every_read_of_another_group_bridges_a_late_evaluation() -> None:
    groups = every_group(default_objective_rules())
    recorder = recorders(groups)
    found = [
        (group.name, name, back, recorder[name].interval)
        for group in groups
        for rule in group.rules
        for name, back in reads(rule.expr)
        if recorder.get(name, group) is not group
    ]
    assert len(found) > 50
    assert not [
        (group, name) for group, name, back, interval in found if back < 2 * interval + DELIVERY
    ]


RULE = ObjectiveRule(
    flows=("*",), key=SliKey(Sli.AVAILABILITY), target=0.999, max_severity=Severity.PAGE
)
LABELS = 'flow="us->eu", source="us", target="eu", sli="availability", tier="all"'
MINUTES = 110
FIGURES = [
    series.name
    for series in RECORDED
    if series.labels[: len(SLI_LABELS)] == SLI_LABELS and "excluded" not in series.name
]


def counter(outage: range = range(0)) -> tuple[str, str]:
    """All and good events every 30 s: 1 and 30 per sample by turns of 10 minutes."""
    total = good = 0
    totals, goods = [], []
    for sample in range(2 * MINUTES):
        totals.append(str(total))
        goods.append(str(good))
        events = 30 if sample // 20 % 2 else 1
        total += events
        good += 0 if sample // 2 in outage else events
    return " ".join(totals), " ".join(goods)


def inputs(outage: range = range(0)) -> dict[str, str]:
    totals, goods = counter(outage)
    steady = {
        'mm2_flow_observed_timestamp_seconds{flow="us->eu", source="us", target="eu"}': (
            f"0+30x{2 * MINUTES}"
        ),
        f"mm2_sli_unknown_events_total{{{LABELS}}}": f"0x{2 * MINUTES}",
    }
    return {
        f"mm2_sli_events_total{{{LABELS}}}": totals,
        f"mm2_sli_good_events_total{{{LABELS}}}": goods,
        **steady,
    }


ALERTS = 'count(ALERTS{alertname=~"MM2ErrorBudget.*|MM2SLO.*|MM2Flow.*"}) or vector(0)'


@needs_promtool
def test_bursts_without_bad_events_give_no_alert_and_every_figure(tmp_path: Path) -> None:
    times = [f"{minute}m" for minute in range(90, 110, 3)]
    evaluate(
        tmp_path,
        late(every_group([RULE])),
        inputs(),
        {(ALERTS, f"{minute}m"): {"{}": 0} for minute in range(5, MINUTES, 5)}
        | {
            ("sum(last_over_time({__name__=~'flow:mm2_sli_bad:.+'}[10m]))", time): {"{}": 0}
            for time in times
        }
        | {
            (f"count(last_over_time({name}[10m]))", time): {"{}": 1}
            for name in FIGURES
            for time in times
        },
        interval="30s",
    )


@needs_promtool
def test_outage_pages_within_four_minutes_without_a_gap(tmp_path: Path) -> None:
    start = 70
    page = 'count(ALERTS{alertname="MM2ErrorBudgetBurn", alertstate="firing", window="1h"})'
    evaluate(
        tmp_path,
        late(every_group([RULE])),
        inputs(range(start, start + 30)),
        {(page, f"{start}m"): {}}
        | {(page, f"{minute}m"): {"{}": 1} for minute in range(start + 4, start + 30)},
        interval="30s",
    )
