"""Alerts about causes: annotations, labels and durations."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from mm2slo_alerts import alert_files
from mm2slo_alerts.alert_rules import NO_LINKS, PRODUCTION, AlertRule, RecordingRule, Scale
from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS, Thresholds
from mm2slo_alerts.alertmanager_config import document
from mm2slo_core.catalogue.prometheus_series import (
    CLUSTER_UNREACHABLE,
    FLOW_RECOVERING,
    FLOW_STOPPED,
    FLOW_UNREACHABLE,
)
from mm2slo_core.catalogue.promql import duration
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig, SloConfig
from mm2slo_core.objectives.objective import WINDOW_PAIRS, Severity
from mm2slo_core.topology import Flow

OUTAGES = {"MM2FlowStopped", "MM2ClusterUnreachable"}
TEXTS = ("summary", "impact", "action")
AWAY = "MM2ClusterUnreachable"
ROOT = Path(__file__).parents[4]


def alerts(scale: Scale = PRODUCTION, links: LinksConfig = NO_LINKS) -> dict[str, AlertRule]:
    found = alert_files.cause_groups(DEFAULT_THRESHOLDS, links, scale)
    return {
        rule.alert: rule for group in found for rule in group.rules if isinstance(rule, AlertRule)
    }


def test_causes_have_the_severity_of_their_runbook() -> None:
    for name, rule in alerts().items():
        [line] = (ROOT / "docs" / "runbooks" / f"{name}.md").read_text().splitlines()[2:3]
        assert line.startswith(f"`{rule.labels['severity']}`"), name
    assert [n for n, rule in alerts().items() if rule.labels["severity"] == "none"] == [
        "MM2Watchdog"
    ]


@pytest.mark.parametrize("name", alerts())
def test_annotations_are_sentences_without_slack_markup(name: str) -> None:
    annotations = alerts()[name].annotations
    assert set(annotations) - {"lasted"} == set(TEXTS)
    assert ("lasted" in annotations) == (name in OUTAGES)
    for text in TEXTS:
        shown = re.sub(r"\{\{.*?\}\}", "", annotations[text])
        assert annotations[text].endswith((".", "}")), annotations[text]
        assert not re.search(r"[<>&`*~\n]", shown), f"{shown!r} is markup in Slack"
    assert len(re.sub(r"\{\{.*?\}\}", "us->eu", annotations["summary"])) < 150
    assert annotations["impact"].count(". ") == 0, "one sentence"


@pytest.mark.parametrize("name", alerts())
def test_labels_contain_no_values(name: str) -> None:
    rule = alerts()[name]
    assert set(rule.labels) == {"severity"}
    assert "$value" not in str(rule.labels)


@pytest.mark.parametrize("name", alerts())
def test_links_are_absent_until_configured(name: str) -> None:
    assert not [key for key in alerts()[name].annotations if key.endswith("_url")]
    links = LinksConfig(
        runbook="https://wiki/runbooks",
        dashboard="https://grafana",
        report="https://slo",
        splunk="https://splunk",
    )
    found = alerts(links=links)[name].annotations
    assert found["runbook_url"] == f"https://wiki/runbooks/{name}.md"
    of_flow = "$labels.flow" in found["summary"]
    assert ("var-flow=" in found["dashboard_url"]) == of_flow
    assert ("flow=" in found["report_url"]) == of_flow
    assert ("flow%3D" in found["splunk_url"]) == of_flow


def test_scale_shortens_every_duration() -> None:
    production, short = alerts(), alerts(Scale(1 / 60))
    assert (short["MM2FlowStopped"].keep, short["MM2TaskFailed"].keep) == (1.5, 10.0)
    for name, rule in production.items():
        assert short[name].hold == pytest.approx(rule.hold / 60)
        assert short[name].keep == pytest.approx(rule.keep / 60)
        for long in re.findall(r"\[(\w+)[\]:]", rule.expr):
            assert f"[{long}" not in short[name].expr or long.endswith("s"), (name, long)
    assert "[30s:250ms]) / 120 >= 0.1" in short["MM2ClusterUnreachable"].expr
    assert "[30s], 240)) < 15" in short["MM2RetentionHeadroomLow"].expr
    assert "> 200\n" in short["MM2CheckpointStalled"].expr, "a number of records is not scaled"


def test_pages_leave_out_a_stop_for_longer_than_they_see_it() -> None:
    deadline, evaluations = 60.0, 2 * DEFAULT_THRESHOLDS.interval
    after = max(
        pair.short + deadline + evaluations
        for pair in WINDOW_PAIRS
        if pair.severity is Severity.PAGE
    )
    assert DEFAULT_THRESHOLDS.outage_memory >= after
    assert DEFAULT_THRESHOLDS.outage_memory > DEFAULT_THRESHOLDS.recovery_trend


@pytest.mark.parametrize(("name", "noticed"), [("MM2FlowStopped", 30.0), (AWAY, 60.0)])
def test_end_of_an_outage_is_in_slack_within_five_minutes(name: str, noticed: float) -> None:
    flush, poll, scrape, evaluation = 60.0, 5.0, 15.0, DEFAULT_THRESHOLDS.interval
    (interval,) = {
        each["group_interval"]
        for each in route_of_pages()
        if each["group_by"] in (["flow"], ["cluster"])
    }
    assert interval == "1m"
    keep = alerts()[name].keep
    assert flush + poll + scrape + evaluation + keep + 60.0 <= 300.0
    # The alert starts as late as it ends: it is as long as the outage.
    assert keep == noticed + 60.0


def route_of_pages() -> list[dict[str, Any]]:
    top = document(AlertingConfig(), SloConfig())["route"]["routes"]
    return [each for each in top if 'severity="page"' in each["matchers"] and "group_by" in each]


def test_configured_flows_are_expected() -> None:
    found = alert_files.cause_groups(
        DEFAULT_THRESHOLDS,
        NO_LINKS,
        PRODUCTION,
        {Flow("us", "eu"): 60.0, Flow("eu", "us"): 60.0},
    )
    rules = {rule.alert: rule for g in found for rule in g.rules if isinstance(rule, AlertRule)}
    absent = rules["MM2FlowMetricsAbsent"]
    assert absent.expr.count("label_replace(vector(1)") == 2
    assert 'vector(1), "flow", "eu->us", "", "")' in absent.expr
    assert absent.annotations["action"].endswith("generate the rules again.")
    recorded = {rule.record for g in found for rule in g.rules if isinstance(rule, RecordingRule)}
    assert recorded == {
        series.name
        for series in (CLUSTER_UNREACHABLE, FLOW_STOPPED, FLOW_UNREACHABLE, FLOW_RECOVERING)
    }


def test_each_threshold_has_unit_and_reason() -> None:
    for each in fields(Thresholds):
        assert each.metadata["unit"] in {
            *("seconds", "records", "failures", "evaluations", "share", "changes", "label")
        }
        assert each.metadata["why"].endswith(".")
        assert len(each.metadata["why"]) > 25


def test_exporter_job_is_configurable() -> None:
    thresholds = Thresholds(exporter_job='mm2 "slo"')
    found = alert_files.cause_groups(thresholds, NO_LINKS, PRODUCTION)
    down = next(
        rule
        for group in found
        for rule in group.rules
        if isinstance(rule, AlertRule) and rule.alert == "MM2ExporterDown"
    )
    assert down.expr.count('job="mm2 \\"slo\\""') == 2


def test_durations_in_summaries_are_scaled() -> None:
    found = alerts(Scale(0.5))
    limits = DEFAULT_THRESHOLDS.scaled(Scale(0.5))
    assert (
        f"the last {duration(limits.lost_window)}" in found["MM2RecordsLost"].annotations["summary"]
    )
    assert "the last 30m" in found["MM2RecordsLost"].annotations["summary"]
