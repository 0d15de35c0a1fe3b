"""OpenSLO export: the shape that OpenSLO v1 requires, exact figures, and names."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
import yaml

from mm2slo_core.config.config_loader import load_config
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import Objective, Severity
from mm2slo_core.objectives.objective_documents import render_openslo
from mm2slo_core.quantity_text import parse_shorthand
from mm2slo_core.topology import Flow

CONFIG = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows:
  - {flow: us->eu, canary: {carrier: topic}, freshness: [{name: Gold, topics: [g]}, {name: rest}]}
  - {flow: eu->us, canary: {latency_tiers: [0.5s, 60s]}}
alerting: {slack: [{name: mm2, webhook_url_file: /run/url}, {name: db, webhook_url_file: /u}]}
slo:
  owner: Team A
  objectives:
    - {flows: us->eu, sli: availability, target: 99.95%, channel: db}
    - {sli: checkpoint_freshness, target: 60%, window: 14d}
    - {flows: us->eu, sli: data_freshness, tier: Gold, target: 80%, max_severity: page}
"""
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# OpenSLO v1, README: the keys of each kind's spec that are written, and whether they are required.
SPEC = {
    "Service": {"description": False},
    "SLI": {"ratioMetric": True},
    "SLO": {
        "description": False, "service": True, "indicatorRef": True, "timeWindow": True,
        "budgetingMethod": True, "objectives": True, "alertPolicies": False,
    },
    "AlertPolicy": {
        "alertWhenNoData": False, "alertWhenBreaching": False, "alertWhenResolved": False,
        "conditions": True, "notificationTargets": True,
    },
    "AlertCondition": {"severity": True, "condition": True},
    "AlertNotificationTarget": {"target": True},
}  # fmt: skip
QUERY = re.compile(r'(\w+)\{flow="([^"]*)",sli="([^"]*)",tier="([^"]*)"\}')


def objectives() -> tuple[Objective, ...]:
    return load_config(CONFIG).objectives


def documents(exported: Iterable[Objective]) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(render_openslo(exported)))


def by_name(exported: Iterable[Objective], kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in documents(exported) if each["kind"] == kind}


def series(indicator: dict[str, Any], role: str) -> tuple[str, Flow, SliKey]:
    source = indicator["spec"]["ratioMetric"][role]["metricSource"]
    assert source["type"] == "Prometheus"
    match = QUERY.fullmatch(source["spec"]["query"])
    assert match
    return match[1], Flow.parse(match[2]), SliKey(Sli(match[3]), match[4])


def test_openslo_documents_have_the_required_keys_and_valid_references() -> None:
    found = documents(objectives())
    names = {kind: set() for kind in SPEC}  # type: dict[str, set[str]]
    for each in found:
        kind, name = each["kind"], each["metadata"]["name"]
        assert set(each) == {"apiVersion", "kind", "metadata", "spec"}
        assert each["apiVersion"] == "openslo/v1"
        assert NAME.fullmatch(name), name
        assert name not in names[kind]
        names[kind].add(name)
        assert set(each["spec"]) <= set(SPEC[kind])
        assert {key for key, must in SPEC[kind].items() if must} <= set(each["spec"])
    assert [len(names[kind]) for kind in SPEC] == [2, 16, 16, 10, 10, 2]
    for each in found:
        spec = each["spec"]
        if each["kind"] == "SLO":
            assert spec["service"] in names["Service"]
            assert spec["indicatorRef"] in names["SLI"]
            assert set(spec["alertPolicies"]) <= names["AlertPolicy"]
            assert spec["budgetingMethod"] == "Occurrences"
            assert [set(window) for window in spec["timeWindow"]] == [{"duration", "isRolling"}]
            assert re.fullmatch(r"[1-9]\d*[mhdwMQY]", spec["timeWindow"][0]["duration"])
            assert [set(entry) for entry in spec["objectives"]] == [{"displayName", "target"}]
        if each["kind"] == "AlertPolicy":
            assert [entry["conditionRef"] in names["AlertCondition"]
                    for entry in spec["conditions"]] == [True]  # fmt: skip
            assert {entry["targetRef"] for entry in spec["notificationTargets"]} <= names[
                "AlertNotificationTarget"
            ]
        if each["kind"] == "AlertCondition":
            assert set(spec["condition"]) == {
                "kind", "op", "threshold", "lookbackWindow", "alertAfter",
            }  # fmt: skip


def test_openslo_slos_have_the_values_of_every_objective() -> None:
    exported = objectives()
    indicators = by_name(exported, "SLI")
    found = set()
    for slo in by_name(exported, "SLO").values():
        spec, notes = slo["spec"], slo["metadata"]["annotations"]
        indicator = indicators[spec["indicatorRef"]]
        good, total = series(indicator, "good"), series(indicator, "total")
        assert (good[0], total[0]) == ("mm2_sli_good_events_total", "mm2_sli_events_total")
        assert good[1:] == total[1:]
        found.add(
            (
                *total[1:],
                spec["objectives"][0]["target"],
                parse_shorthand(spec["timeWindow"][0]["duration"]),
                Severity(notes["mm2slo/max_severity"]),
                notes.get("mm2slo/owner", ""),
                notes.get("mm2slo/channel", ""),
            )
        )
    assert len(exported) == 16
    assert found == {
        (
            each.flow, each.key, each.target, each.window, each.max_severity, each.owner,
            each.channel,
        )
        for each in exported
    }  # fmt: skip


def test_openslo_figures_are_exact() -> None:
    text = render_openslo(objectives())
    assert "target: 0.9995" in text
    assert "99.95% of us->eu availability events must be good over 28d" in text
    assert "threshold: 13.44\n" in text
    assert "000000" not in text


def test_openslo_conditions_have_the_figures_of_the_window_pairs() -> None:
    conditions = by_name(objectives(), "AlertCondition")
    slo = by_name(objectives(), "SLO")["us-to-eu-availability"]
    assert slo["metadata"]["displayName"] == "us->eu availability"
    assert slo["spec"]["alertPolicies"] == [
        "burn-fast-28d-db", "burn-steady-28d-db", "burn-slow-28d-db", "burn-creeping-28d-db",
    ]  # fmt: skip
    found = [conditions[name]["spec"] for name in slo["spec"]["alertPolicies"]]
    assert [each["severity"] for each in found] == ["page", "page", "ticket", "ticket"]
    assert [each["condition"] for each in found] == [
        {"kind": "burnrate", "op": "gt", "threshold": threshold, "lookbackWindow": long,
         "alertAfter": hold}
        for threshold, long, hold in (
            (13.44, "1h", "1m"), (5.6, "6h", "5m"),
            (2.8, "1d", "15m"), (0.933333333333, "3d", "30m"),
        )
    ]  # fmt: skip


def test_openslo_max_severity_is_page_although_no_page_pair_can_fire() -> None:
    # 80 % over 28 days: the factors of both page pairs exceed the highest possible burn rate, 5.
    slo = by_name(objectives(), "SLO")["us-to-eu-data-freshness-gold"]
    assert slo["metadata"]["annotations"]["mm2slo/max_severity"] == "page"
    conditions = by_name(objectives(), "AlertCondition")
    assert {conditions[name]["spec"]["severity"] for name in slo["spec"]["alertPolicies"]} == {
        "ticket"
    }


def test_openslo_label_value_with_quotes_is_rejected() -> None:
    objective = Objective(
        flow=Flow("us", "eu"), key=SliKey(Sli.LATENCY, 'a"b'), target=0.999, window=28 * 86_400.0,
        max_severity=Severity.PAGE, owner="", channel="",
    )  # fmt: skip
    with pytest.raises(ValueError, match="expected text without quotes and backslashes"):
        render_openslo((objective,))
