"""Alerts about objectives, evaluated by promtool."""

import re
from pathlib import Path

import pytest
from promtool import RULE_TESTS, narrowed, needs_promtool, run_rule_tests

from mm2slo_alerts import burn_alerts
from mm2slo_alerts.alert_rules import NO_LINKS, AlertRule, Scale
from mm2slo_alerts.burn_alerts import WINDOW_NAMES
from mm2slo_core.config.alerting_config import LinksConfig
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import WINDOW_PAIRS, ObjectiveRule, Severity

WINDOWS = ("1h", "6h", "1d", "3d")
LONGEST = WINDOWS[-2:]
NAMES = (
    *(f"{burn_alerts.ALERT}-{window}" for window in WINDOWS),
    "MM2ErrorBudgetExhausted",
    "MM2SLOCoverageLow",
)


def alerts(scale: Scale | None = None, links: LinksConfig = NO_LINKS) -> dict[str, AlertRule]:
    """Rules by alert, and by window if there are several."""
    (group,) = burn_alerts.burn_groups(links=links, scale=scale or Scale())
    return {
        "-".join(filter(None, (rule.alert, rule.labels.get("window")))): rule
        for rule in group.rules
        if isinstance(rule, AlertRule)
    }


@needs_promtool
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.long] * each.endswith(LONGEST)) for each in NAMES],
)
def test_burn_alert_fires_just_over_its_threshold(tmp_path: Path, name: str) -> None:
    groups = ("mm2slo-burn", "mm2slo-causes-flow")
    run_rule_tests(narrowed(RULE_TESTS / f"{name}.test.yml", tmp_path, groups))


def test_alerts_are_one_per_pair_and_two_per_budget() -> None:
    assert tuple(alerts()) == NAMES


def test_pair_alert_has_windows_and_severity() -> None:
    found = alerts()
    for pair in WINDOW_PAIRS:
        window = WINDOW_NAMES[pair.long]
        rule = found[f"{burn_alerts.ALERT}-{window}"]
        assert rule.labels == {"severity": pair.severity.value, "window": window}
        assert (rule.hold, rule.keep) == (pair.hold, pair.keep)
        assert f"({window} and {WINDOW_NAMES[pair.short]} windows)" in rule.annotations["summary"]
        assert f"ratio{WINDOW_NAMES[pair.short]}" in rule.expr


def test_only_pages_require_objectives_that_page() -> None:
    requiring = {name for name, rule in alerts().items() if 'severity="page"' in rule.expr}
    assert requiring == {"MM2ErrorBudgetBurn-1h", "MM2ErrorBudgetBurn-6h"}


def test_scale_shortens_durations_and_keeps_factors() -> None:
    fast = alerts(Scale(1 / 60))["MM2ErrorBudgetBurn-1h"]
    steady = alerts(Scale(1 / 60))["MM2ErrorBudgetBurn-6h"]
    assert (fast.hold, fast.keep, steady.hold) == (1.0, 5.0, 5.0)
    # 28 days in a minute each: 40320 s * 0.02 / 60 s is 13.44 as well.
    assert "flow:mm2_slo_window:seconds * 0.02 / 60\n" in fast.expr
    assert "last_over_time(flow:mm2_slo_burn:ratio6h[12s500ms])" in steady.expr
    assert fast.labels == {"severity": "page", "window": "1h"}


def test_labels_contain_no_templates() -> None:
    for rule in alerts().values():
        assert not any("{{" in value for value in rule.labels.values())


def test_annotations_contain_no_slack_markup() -> None:
    for rule in alerts().values():
        for name, text in rule.annotations.items():
            shown = re.sub(r"\{\{.*?\}\}", "", text)
            assert not set(shown) & set("<>&`*~"), name


def test_links_are_present_when_configured() -> None:
    assert not any(name.endswith("_url") for name in alerts()["MM2SLOCoverageLow"].annotations)
    links = LinksConfig(
        runbook="https://books/",
        dashboard="https://grafana",
        report="https://slo",
        splunk="https://splunk/",
    )
    texts = alerts(links=links)["MM2SLOCoverageLow"].annotations
    assert texts["runbook_url"] == "https://books/MM2SLOCoverageLow.md"
    assert texts["dashboard_url"] == (
        "https://grafana/d/mm2slo-flow?var-flow={{ $labels.flow | urlquery }}&from=now-6h&to=now"
    )
    assert texts["report_url"].startswith("https://slo/slo/{{ $labels.source | toLower ")
    assert texts["splunk_url"] == (
        "https://splunk/app/repl_observability/search?q=search%20%60repl_index%60%20"
        "flow%3D%22{{ $labels.flow | urlquery }}%22%20"
        "NOT%20event_action%3Doffsets_committing%20%7C%20%60repl_dedup%60"
        "&earliest=-6h&latest=now"
    )


def test_notices_name_pairs_that_can_never_fire() -> None:
    low = ObjectiveRule(
        flows=("us->*",), key=SliKey(Sli.LATENCY, "10s"), target=0.9, max_severity=Severity.PAGE
    )
    high = ObjectiveRule(
        flows=("*",), key=SliKey(Sli.AVAILABILITY), target=0.999, max_severity=Severity.PAGE
    )
    # 13.44 * 0.1 is above 1; 5.6 * 0.1 is not.
    (notice,) = burn_alerts.burn_notices([low, high])
    assert notice == (
        "MM2ErrorBudgetBurn (1h) can never fire for latency (10s) of us->*: with a target of 0.9 "
        "over 28 days it needs an error ratio above 1.344"
    )
