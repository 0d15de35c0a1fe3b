"""Recording rules, evaluated by promtool; expected counts are written by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from promtool import RULE_TESTS, evaluate, narrowed, needs_promtool, run_rule_tests

from mm2slo_alerts import burn_alerts, recording_rules
from mm2slo_alerts.alert_files import RECORDING_RULES, alert_groups, generated
from mm2slo_alerts.alert_rules import RecordingRule, Scale
from mm2slo_alerts.objective_series import flow_pattern
from mm2slo_core.catalogue.prometheus_series import (
    CLUSTER_UNREACHABLE,
    FLOW_RECOVERING,
    FLOW_SEEN,
    FLOW_STOPPED,
    FLOW_UNREACHABLE,
    MAINTENANCE_ACTIVE,
    RECORDED,
)
from mm2slo_core.config.alerting_config import LinksConfig
from mm2slo_core.config.config_model import default_objective_rules
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import DAY, ObjectiveRule, Severity

FRESH = SliKey(Sli.DATA_FRESHNESS, "default")
KINDS = ("events", "bad")
STRICT = ObjectiveRule(
    flows=("us->*", "??->us"),
    key=FRESH,
    target=0.99,
    window=7 * DAY,
    max_severity=Severity.PAGE,
    owner="streaming",
    channel="ops",
)
ONLY_EVENTS_GROUP = {"recording-events.test.yml", "recording-edges.test.yml"}
REST = ObjectiveRule(flows=("*",), key=FRESH, target=0.9)


def labels(flow: str) -> str:
    source, _, target = flow.partition("->")
    return (
        f'flow="{flow}", source="{source}", target="{target}", sli="data_freshness", tier="default"'
    )


def of(flow: str, name: str = "", extra: str = "") -> str:
    return f"{name}{{{labels(flow)}{extra}}}"


@needs_promtool
@pytest.mark.parametrize("name", sorted(each.name for each in RULE_TESTS.glob("recording-*")))
def test_recording_rules_match_hand_written_counts(tmp_path: Path, name: str) -> None:
    path = RULE_TESTS / name
    groups = ("mm2slo-objectives", "mm2slo-events") if name in ONLY_EVENTS_GROUP else None
    run_rule_tests(narrowed(path, tmp_path, groups) if groups else path)


def recorded(rules: tuple[ObjectiveRule, ...]) -> dict[str, list[RecordingRule]]:
    found: dict[str, list[RecordingRule]] = {}
    for group in recording_rules.recording_groups(rules):
        for rule in group.rules:
            assert isinstance(rule, RecordingRule)
            found.setdefault(rule.record, []).append(rule)
    return found


def test_recorded_series_are_those_of_the_catalogue() -> None:
    with_causes = {MAINTENANCE_ACTIVE, FLOW_STOPPED, FLOW_RECOVERING, FLOW_SEEN}
    with_causes |= {CLUSTER_UNREACHABLE, FLOW_UNREACHABLE}
    assert set(recorded(default_objective_rules())) | {each.name for each in with_causes} == {
        series.name for series in RECORDED
    }


def test_each_series_has_one_rule_per_set_of_labels() -> None:
    # Two rules that record one series would make its samples stale.
    rules = (STRICT, REST, ObjectiveRule(flows=("x->y",), key=SliKey(Sli.ORDER), target=0.9))
    for found in recorded(rules).values():
        given = [tuple(sorted(rule.labels.items())) for rule in found]
        assert len(set(given)) == len(given)


def test_group_intervals_are_within_lookback() -> None:
    assert all(group.interval <= 300 for group in recording_rules.recording_groups((REST,)))


@pytest.mark.parametrize("count", [1, 10, 50])
def test_groups_are_within_default_limits_of_mimir(count: int) -> None:
    """`ruler_max_rules_per_rule_group` is 20, `ruler_max_rule_groups_per_tenant` is 70."""
    rules = [
        replace(REST, flows=(f"f{number}->eu",), owner=f"o{number}") for number in range(count)
    ]
    made = recording_rules.recording_groups(rules)
    assert max(len(group.rules) for group in made) <= 20
    assert len(made) + len(alert_groups(LinksConfig(runbook="https://example.org/"))) <= 70
    names = [
        rule.labels["owner"] for group in made for rule in group.rules if "owner" in rule.labels
    ]
    assert len(names) == count
    assert len({group.name for group in made}) == len(made)


def test_same_objectives_give_same_bytes() -> None:
    assert generated() == generated()
    assert "sum_over_time" in generated()[RECORDING_RULES]


def test_flow_pattern_is_translated_to_regex() -> None:
    assert flow_pattern(["us->eu"]) == "us->eu"
    assert flow_pattern(["us-*->e?", "a.b->c+d"]) == "us-.*->e.|a\\.b->c\\+d"


def test_objective_after_wildcard_is_omitted() -> None:
    behind = ObjectiveRule(flows=("us->eu",), key=FRESH, target=0.5)
    assert recorded((REST, behind)) == recorded((REST,))


@needs_promtool
def test_first_matching_objective_applies(tmp_path: Path) -> None:
    flows = ("us->eu", "eu->us", "ap->eu")
    evaluate(
        tmp_path,
        recording_rules.recording_groups((STRICT, REST)),
        {of(flow, "mm2_sli_events_total", ', instance="a", job="j"'): "0+1x4" for flow in flows},
        {
            ("flow:mm2_slo_objective:ratio", "10m"): {
                of(
                    flow,
                    "flow:mm2_slo_objective:ratio",
                    ', severity="page", owner="streaming", channel="ops"',
                ): 0.99
                for flow in flows[:2]
            }
            | {of("ap->eu", "flow:mm2_slo_objective:ratio", ', severity="ticket"'): 0.9},
            ("flow:mm2_slo_window:seconds / 86400", "10m"): {
                of("us->eu"): 7,
                of("eu->us"): 7,
                of("ap->eu"): 28,
            },
        },
    )


@needs_promtool
def test_flows_are_summed_over_window_of_their_objective(tmp_path: Path) -> None:
    flows = ("us->eu", "ap->eu")
    total, left = "flow:mm2_sli_events:sum_window", "flow:mm2_slo_budget_remaining:ratio"
    evaluate(
        tmp_path,
        recording_rules.recording_groups((STRICT, REST)),
        {of(flow, f"flow:mm2_sli_{kind}:step5m"): "10x120" for flow in flows for kind in KINDS}
        | {of(flow, "mm2_sli_events_total", ', instance="a"'): "0x120" for flow in flows},
        {
            # 7 days of one sample each 6 hours are 28, 28 days are 112; each is 10.
            (total, "28d"): {of("us->eu", total): 280, of("ap->eu", total): 1120},
            # 28 of 2,016 and 112 of 8,064 steps are measured, and all bad: 1/72 of the window's
            # events, of which 1 % and 10 % are allowed.
            (f"round({left} * 3600)", "28d"): {of("us->eu"): -1400, of("ap->eu"): 3100},
        },
        interval="6h",
    )


YOUNG = ObjectiveRule(
    flows=("*",), key=SliKey(Sli.AVAILABILITY), target=0.999, max_severity=Severity.PAGE
)
_COUNTERS = 'flow="us->eu", source="us", target="eu", sli="availability", tier="all", instance="a"'
FIRING = 'count(ALERTS{{alertname=~"MM2ErrorBudget{}.*"}}) or vector(0)'


@needs_promtool
def test_three_bad_canaries_of_a_young_flow_do_not_page(tmp_path: Path) -> None:
    objectives, events = recording_rules.recording_groups((YOUNG,))[:2]
    evaluate(
        tmp_path,
        (objectives, events, *burn_alerts.burn_groups()),
        {
            # Six canaries a minute, of which the second to the fourth are bad.
            f"mm2_sli_events_total{{{_COUNTERS}}}": "0+3x130",
            f"mm2_sli_good_events_total{{{_COUNTERS}}}": "0 0 3+3x128",
        },
        {(FIRING.format("Burn"), time): {"{}": 0} for time in ("2m", "3m", "10m", "30m", "62m")}
        | {
            # 3 of 18 are bad, in 3 of 60 minutes.
            ("round(flow:mm2_slo_burn:ratio1h * 3)", "3m"): {_of_availability(): 25},
            ("round(flow:mm2_slo_error:ratio1h * 18)", "3m"): {_of_availability(): 3},
        },
        interval="30s",
    )


@needs_promtool
def test_hour_with_maintenance_burns_as_if_it_were_shorter(tmp_path: Path) -> None:
    evaluate(
        tmp_path,
        recording_rules.recording_groups((YOUNG,))[:2],
        {
            f"mm2_sli_events_total{{{_COUNTERS}}}": "0+3x140",
            f"mm2_sli_good_events_total{{{_COUNTERS}}}": "0+3x100 300+3x38",
            f"flow:mm2_maintenance:active{_of_flow()}": "_x60 1x19",
            # Maintenance from 30 to 40 minutes: steps of 30 to 47 minutes are excluded.
            f"flow:mm2_sli_excluded:step5m{_of_availability()}": "_x60 30 _x8 30 _x8 30 _x8 30",
        },
        {
            ("flow:mm2_sli_measured:count1h", "65m"): {
                _of_availability().replace("{", "flow:mm2_sli_measured:count1h{", 1): 86
            },
            (
                "abs(flow:mm2_slo_burn:ratio1h - 1000 * flow:mm2_slo_error:ratio1h) < bool 1e-9",
                "65m",
            ): {_of_availability(): 1},
        },
        interval="30s",
    )


@needs_promtool
def test_three_minutes_of_total_outage_of_a_young_flow_page(tmp_path: Path) -> None:
    objectives, events = recording_rules.recording_groups((YOUNG,))[:2]
    evaluate(
        tmp_path,
        (objectives, events, *burn_alerts.burn_groups()),
        {
            f"mm2_sli_events_total{{{_COUNTERS}}}": "0+3x10",
            f"mm2_sli_good_events_total{{{_COUNTERS}}}": "0x10",
        },
        {(FIRING.format("Burn"), "3m"): {"{}": 1}},
        interval="30s",
    )


@needs_promtool
def test_one_bad_event_of_a_young_flow_does_not_exhaust_its_budget(tmp_path: Path) -> None:
    evaluate(
        tmp_path,
        (*recording_rules.recording_groups((YOUNG,)), *burn_alerts.burn_groups()),
        {
            f"mm2_sli_events_total{{{_COUNTERS}}}": "0+6x30",
            f"mm2_sli_good_events_total{{{_COUNTERS}}}": "0 5+6x30",
        },
        {
            (FIRING.format("Exhausted"), "16m"): {"{}": 0},
            (FIRING.format("Exhausted"), "22m"): {"{}": 0},
        },
        interval="1m",
    )


def _of_flow() -> str:
    return '{flow="us->eu", source="us", target="eu"}'


def _of_availability() -> str:
    return '{flow="us->eu", source="us", target="eu", sli="availability", tier="all"}'


@needs_promtool
def test_scaled_rules_record_same_figures(tmp_path: Path) -> None:
    # 1/60: steps of 5 s, windows of 30 s to 72 min, the objective's of 2 h 48 min.
    rule = ObjectiveRule(flows=("*",), key=FRESH, target=0.9, window=7 * DAY)
    series = ', instance="a", job="j"'
    evaluate(
        tmp_path,
        recording_rules.recording_groups((rule,), Scale(1 / 60)),
        {
            of("us->eu", "mm2_sli_events_total", series): "0+10x150",
            of("us->eu", "mm2_sli_good_events_total", series): "0+9x150",
        },
        {
            ("flow:mm2_slo_error:ratio1h", "10m"): {
                of("us->eu", "flow:mm2_slo_error:ratio1h"): 0.1
            },
            ("flow:mm2_sli_events:sum2h", "10m"): {of("us->eu", "flow:mm2_sli_events:sum2h"): 240},
            # Burn rate 1 in 120 of 2,016 steps.
            ("round((1 - flow:mm2_slo_budget_remaining:ratio) * 2016)", "10m"): {of("us->eu"): 120},
            ("flow:mm2_slo_window:seconds", "10m"): {
                of("us->eu", "flow:mm2_slo_window:seconds"): 10080
            },
        },
        interval="5s",
    )
