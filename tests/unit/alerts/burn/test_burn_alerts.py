"""The alerts about objectives: what they ask, and that Prometheus's own program agrees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from promtool import RULE_TESTS, narrowed, needs_promtool, run_rule_tests

from mm2slo_alerts import burn
from mm2slo_alerts.burn.texts import FIRST_STEP, IMPACT
from mm2slo_alerts.model import AlertRule, Links, Scale
from mm2slo_core.objectives import BURN_PAIRS, ObjectiveRule, Severity
from mm2slo_core.sli import Sli, SliKey

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (*burn.ALERTS.values(), "MM2ErrorBudgetExhausted", "MM2SLOCoverageLow")


def alerts(scale: Scale | None = None, links: Links | None = None) -> dict[str, AlertRule]:
    (group,) = burn.groups(links=links, scale=scale or Scale())
    return {rule.alert: rule for rule in group.rules if isinstance(rule, AlertRule)}


@needs_promtool
@pytest.mark.parametrize("name", NAMES)
def test_fires_just_over_its_threshold_and_not_just_under(tmp_path: Path, name: str) -> None:
    run_rule_tests(narrowed(RULE_TESTS / f"{name}.test.yml", tmp_path, ("mm2slo-burn",)))


def test_there_is_one_alert_per_pair_and_two_about_the_whole() -> None:
    assert tuple(alerts()) == NAMES


def test_a_pair_names_its_windows_and_its_severity() -> None:
    found = alerts()
    for pair in BURN_PAIRS:
        rule = found[burn.ALERTS[pair.name]]
        assert rule.labels["severity"] == pair.severity.value
        assert (rule.hold, rule.keep) == (pair.hold, pair.keep)
        assert rule.labels["long"] in rule.annotations["summary"]
        assert f"ratio{rule.labels['short']}" in rule.expr


def test_only_pages_ask_for_objectives_that_may_page() -> None:
    asking = {name for name, rule in alerts().items() if 'severity="page"' in rule.expr}
    assert asking == {"MM2ErrorBudgetBurnFast", "MM2ErrorBudgetBurnSteady"}


def test_every_duration_shrinks_with_the_scale_and_the_factor_stays() -> None:
    fast = alerts(Scale(1 / 60))["MM2ErrorBudgetBurnFast"]
    steady = alerts(Scale(1 / 60))["MM2ErrorBudgetBurnSteady"]
    assert (fast.hold, fast.keep, steady.hold) == (1.0, 5.0, 5.0)
    # 28 days in a minute each: 40320 s * 0.02 / 60 s is 13.44 as well.
    assert "flow:mm2_slo_window:seconds * 0.02 / 60\n" in fast.expr
    assert "last_over_time(flow:mm2_slo_burn:ratio6h[10s])" in steady.expr
    assert fast.labels == {"severity": "page", "long": "1h", "short": "5m"}


def test_values_stay_out_of_labels() -> None:
    for rule in alerts().values():
        assert not any("{{" in value for value in rule.labels.values())


def test_each_indicator_has_an_impact_and_a_first_step() -> None:
    assert set(IMPACT) == set(FIRST_STEP) == set(Sli)


def test_texts_hold_nothing_that_slack_reads_as_markup() -> None:
    for rule in alerts().values():
        for name, text in rule.annotations.items():
            shown = re.sub(r"\{\{.*?\}\}", "", text)
            assert not set(shown) & set("<>&`*~"), name


def test_links_are_there_when_their_base_is_known() -> None:
    assert not any(name.endswith("_url") for name in alerts()["MM2SLOCoverageLow"].annotations)
    links = Links(runbook="https://books/", dashboard="https://grafana", report="https://slo")
    texts = alerts(links=links)["MM2SLOCoverageLow"].annotations
    assert texts["runbook_url"] == "https://books/MM2SLOCoverageLow.md"
    assert texts["dashboard_url"] == (
        "https://grafana/d/mm2slo-flow?var-flow={{ $labels.flow | urlquery }}&from=now-6h&to=now"
    )
    assert texts["report_url"] == "https://slo/slo?flow={{ $labels.flow | urlquery }}"


def test_tells_of_pairs_that_can_never_fire() -> None:
    low = ObjectiveRule(
        flows=("us->*",), key=SliKey(Sli.LATENCY, "10s"), target=0.9, worst=Severity.PAGE
    )
    high = ObjectiveRule(
        flows=("*",), key=SliKey(Sli.AVAILABILITY), target=0.999, worst=Severity.PAGE
    )
    # 13.44 * 0.1 is above 1; 5.6 * 0.1 is not.
    (notice,) = burn.notices([low, high])
    assert notice == (
        "MM2ErrorBudgetBurnFast can never fire for latency (10s) of us->*: with a target of 0.9 "
        "over 28 days it needs an error ratio above 1.344"
    )
