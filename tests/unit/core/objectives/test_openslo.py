"""OpenSLO and Sloth: there and back, the shape that OpenSLO v1 asks for, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mm2slo_core.config import Config, load_config, native
from mm2slo_core.errors import UserError
from mm2slo_core.objectives import DAY, Objective, Severity, openslo, sloth
from mm2slo_core.objectives.ids import shortened, slo_id
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from pathlib import Path

BASE = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows:
  - {flow: us->eu, canary: {carrier: topic}, freshness: [{name: Gold, topics: [g]}, {name: rest}]}
  - {flow: eu->us, canary: {latency_tiers: [0.5s, 60s]}}
alerting: {slack: [{name: mm2, webhook_url_file: /run/url}, {name: db, webhook_url_file: /u}]}
"""
SLO = """\
slo:
  owner: Team A
  objectives:
    - {flows: us->eu, sli: availability, target: 99.95%, channel: db}
    - {sli: checkpoint_freshness, target: 60%, window: 14d}
    - {flows: us->eu, sli: data_freshness, tier: Gold, target: 80%, worst: page}
"""
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# OpenSLO v1, README: the keys of each kind's spec that we write, and whether it must be there.
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


def config(slo: str = SLO) -> Config:
    return load_config(BASE + slo)


def documents(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def told(text: str) -> set[tuple[object, ...]]:
    return {
        (each.flow, each.key, each.target, each.window, each.worst, each.owner, each.channel)
        for each in openslo.read(text)
    }


def held(objectives: tuple[Objective, ...]) -> set[tuple[object, ...]]:
    return {
        (each.flow, each.key, each.target, each.window, each.worst, each.owner, each.channel)
        for each in objectives
    }


def test_openslo_there_and_back() -> None:
    objectives = config().objectives
    assert len(objectives) == 16
    assert told(openslo.write(objectives)) == held(objectives)


def test_the_native_section_there_and_back() -> None:
    objectives = config().objectives
    again = load_config(BASE + native.write(objectives))
    assert again.objectives == objectives
    # What came from OpenSLO is the same section.
    assert native.write(openslo.read(openslo.write(objectives))) == native.write(objectives)


def test_the_documents_have_openslos_shape() -> None:
    found = documents(openslo.write(config().objectives))
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


def test_figures_are_exact() -> None:
    text = openslo.write(config().objectives)
    assert "target: 0.9995" in text
    assert "99.95% of the events of us->eu availability are good within 28d" in text
    assert "threshold: 13.44\n" in text
    assert "000000" not in text


def test_a_page_whose_page_pairs_are_dead_stays_a_page() -> None:
    # 80 % over 28 days: neither page pair can fire, and the annotation still says page.
    key = SliKey(Sli.DATA_FRESHNESS, "Gold")
    found = next(
        each for each in openslo.read(openslo.write(config().objectives)) if each.key == key
    )
    assert found.worst is Severity.PAGE
    text = openslo.write(config().objectives)
    assert documents(text) != documents(text.replace("mm2slo/worst: page", "mm2slo/other: page"))


def test_without_annotations_the_policies_tell_the_severity() -> None:
    text = re.sub(r"    mm2slo/\w+: .*\n", "", openslo.write(config().objectives))
    text = text.replace("  annotations:\n", "")
    found = {(each.flow.label, each.key): each for each in openslo.read(text)}
    assert found["us->eu", SliKey(Sli.AVAILABILITY)].worst is Severity.PAGE
    assert found["us->eu", SliKey(Sli.ORDER)].worst is Severity.TICKET
    assert found["us->eu", SliKey(Sli.ORDER)].owner == ""


ONE = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: a, displayName: A, labels: {team: [x]}}
spec:
  description: any
  service: mirror
  indicator:
    metadata: {name: a-sli}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: 'mm2_sli_good_events_total{flow="us->eu", sli="latency", tier="10s"}'}}}
        total: {metricSource: {type: Prometheus, spec: {query: 'mm2_sli_events_total{tier="10s",sli="latency",flow="us->eu"}'}}}
  timeWindow: [{duration: 4w, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{displayName: fast, targetPercent: 99.9}]
"""  # noqa: E501 - as people write it


def test_a_file_that_others_wrote() -> None:
    assert openslo.read(ONE) == (
        openslo.Imported(
            flow=Flow("us", "eu"), key=SliKey(Sli.LATENCY, "10s"), target=0.999, window=28 * DAY
        ),
    )
    assert native.write(openslo.read(ONE)) == (
        "slo:\n  objectives:\n  - flows:\n    - us->eu\n    sli: latency\n    tier: 10s\n"
        "    target: 99.9%\n    window: 28d\n"
    )


def test_a_data_source_is_passed_over_when_it_is_a_prometheus() -> None:
    source = (
        "apiVersion: openslo/v1\nkind: DataSource\nmetadata: {name: p}\n"
        "spec: {type: Prometheus, connectionDetails: {url: 'http://p:9090'}}\n---\n"
    )
    by_name = ONE.replace("type: Prometheus, spec", "metricSourceRef: p, spec")
    assert openslo.read(source + by_name) == openslo.read(ONE)
    with pytest.raises(UserError, match=r"spec\.type: is 'Datadog'; expected Prometheus"):
        openslo.read(source.replace("type: Prometheus", "type: Datadog") + by_name)


REFUSED = {
    "another version": (
        "openslo/v1", "openslo.com/v2alpha",
        "document 1: apiVersion: is 'openslo.com/v2alpha'; expected openslo/v1",
    ),
    "another kind": (
        "kind: SLO", "kind: Composite",
        ("document 1: kind: is 'Composite'; expected one of Service, SLI, SLO, AlertPolicy, "
        "AlertCondition, AlertNotificationTarget, DataSource"),
    ),
    "slices": (
        "Occurrences", "Timeslices",
        "SLO a: spec.budgetingMethod: is 'Timeslices'; expected Occurrences",
    ),
    "a calendar": (
        "isRolling: true}", "isRolling: false, calendar: {startTime: x}}",
        ("SLO a: spec.timeWindow[0].calendar: is a calendar window, and burn rates always roll; "
        "expected no key but duration, isRolling"),
    ),
    "a month": (
        "4w", "1M",
        ("SLO a: spec.timeWindow[0].duration: is '1M'; expected minutes, hours, days or weeks, "
        "as in 28d"),
    ),
    "two targets": (
        "targetPercent: 99.9}", "target: 0.99}, {target: 0.9}",
        "SLO a: spec.objectives: has 2 entries; expected exactly one",
    ),
    "both targets": (
        "targetPercent: 99.9", "targetPercent: 99.9, target: 0.999",
        "SLO a: spec.objectives[0]: needs one of target and targetPercent; expected exactly one",
    ),
    "a target of all": (
        "targetPercent: 99.9", "targetPercent: 100",
        "SLO a: spec.objectives[0].targetPercent: is 100; expected a number between 0 and 100",
    ),
    "a slice target": (
        "targetPercent: 99.9", "targetPercent: 99.9, timeSliceTarget: 0.9",
        ("SLO a: spec.objectives[0].timeSliceTarget: cannot be expressed; expected no key but "
        "displayName, target, targetPercent"),
    ),
    "a gauge": (
        "counter: true", "counter: false",
        "SLO a: spec.indicator.spec.ratioMetric.counter: is False; expected true",
    ),
    "a threshold": (
        "ratioMetric:", "thresholdMetric: {}\n      ratioMetric:",
        ("SLO a: spec.indicator.spec.thresholdMetric: cannot be expressed; expected no key but "
        "description, ratioMetric"),
    ),
    "bad events": (
        "        good:", "        bad: {}\n        good:",
        ("SLO a: spec.indicator.spec.ratioMetric.bad: cannot be expressed; expected no key but "
        "counter, good, total"),
    ),
    "a query that is no selector": (
        "query: 'mm2_sli_events_total", "query: 'sum(mm2_sli_events_total",
        ("SLO a: spec.indicator.spec.ratioMetric.total.metricSource.spec.query: is "
        "'sum(mm2_sli_events_total{tier=\"10s\",sli=\"latency\",flow=\"us->eu\"}'; expected "
        'mm2_sli_events_total{flow="us->eu",sli="latency",tier="10s"}, equalities alone'),
    ),
    "another metric": (
        "'mm2_sli_good_events_total", "'http_requests_total",
        ("SLO a: spec.indicator.spec.ratioMetric.good.metricSource.spec.query: is "
        "'http_requests_total{flow=\"us->eu\", sli=\"latency\", tier=\"10s\"}'; expected "
        'mm2_sli_good_events_total{flow="us->eu",sli="latency",tier="10s"}, equalities alone'),
    ),
    "different series": (
        'flow="us->eu"}', 'flow="eu->us"}',
        ("SLO a: spec.indicator.spec.ratioMetric: good and total are of different series; "
        "expected equal labels"),
    ),
    "an unknown policy": (
        "  budgetingMethod", "  alertPolicies: [mine]\n  budgetingMethod",
        "SLO a: spec.alertPolicies: names 'mine'; expected a policy of the same file",
    ),
    "a key that is ours to know": (
        "  service: mirror", "  service: mirror\n  tier: 1",
        ("SLO a: spec.tier: cannot be expressed; expected no key but description, service, "
        "indicator, indicatorRef, timeWindow, budgetingMethod, objectives, alertPolicies"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), REFUSED.values(), ids=[*REFUSED])
def test_what_cannot_be_held_is_refused_by_its_field(old: str, new: str, expected: str) -> None:
    assert old in ONE
    with pytest.raises(UserError) as refused:
        openslo.read(ONE.replace(old, new, 1), "x.yaml")
    head, *problems = str(refused.value).splitlines()
    assert head.startswith("x.yaml: ")
    assert expected in problems


def test_an_unknown_indicator_has_a_near_match() -> None:
    with pytest.raises(UserError, match=r"did you mean 'latency'\?"):
        openslo.read(ONE.replace('sli="latency"', 'sli="latencies"'))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("x.yaml: 1 problem\ndocuments: hold no SLO; expected at least one document of the "
             "kind SLO")),
        ("- 1", ("x.yaml: 1 problem\ndocument 1: is no mapping; expected apiVersion, kind, "
                "metadata, spec")),
        ("a: [", "x.yaml is not YAML in line 1: "),
        ("kind: SLO\nkind: SLI", "x.yaml is not YAML in line 1: the key 'kind' stands twice; "),
        ("a: !!python/object:os.system {}", "x.yaml is not YAML in line 1: "),
        (ONE + "---\n" + ONE, "x.yaml: 1 problem\nSLO a: metadata.name: stands twice; "),
        (ONE + "---\n" + ONE.replace("name: a,", "name: b,"),
         "x.yaml: 1 problem\ndocuments: promise us->eu latency 10s twice; "),
    ],
)  # fmt: skip
def test_files_that_are_none(text: str, expected: str) -> None:
    with pytest.raises(UserError) as refused:
        openslo.read(text, "x.yaml")
    assert str(refused.value).startswith(expected)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("threshold: 13.44", "threshold: 2", "spec.condition.threshold: is 2; expected 13.44"),
        ("op: gt", "op: lte", "spec.condition.op: is 'lte'; expected gt"),
        ("alertAfter: 1m", "alertAfter: 2m", "spec.condition.alertAfter: is '2m'; expected 1m"),
        ("severity: page", "severity: sms", "spec.severity: is 'sms'; expected page"),
        ("lookbackWindow: 1h", "lookbackWindow: 2h", "spec.condition.lookbackWindow: is '2h'"),
    ],
)
def test_policies_are_those_of_our_pairs(old: str, new: str, field: str) -> None:
    text = openslo.write(config("").objectives)
    assert old in text
    with pytest.raises(UserError) as refused:
        openslo.read(text.replace(old, new))
    assert field in str(refused.value)


def test_ids_fit_a_host_name_and_stay_apart() -> None:
    long = Flow("a" * 40, "b" * 40)
    ids = {slo_id(long, SliKey(sli)) for sli in Sli}
    assert len(ids) == len(Sli)
    assert all(NAME.fullmatch(each) for each in ids)
    assert shortened("x" * 63) == "x" * 63
    assert len(shortened("x" * 64)) == 63
    assert slo_id(Flow("us", "eu"), SliKey(Sli.LATENCY, "0.5s")) == "us-to-eu-latency-0-5s"
    assert slo_id(Flow("us", "eu"), SliKey(Sli.AVAILABILITY)) == "us-to-eu-availability"


def test_sloth_has_a_document_for_each_flow() -> None:
    one, other = documents(sloth.write(config("").objectives))
    assert (one["version"], one["service"], other["service"]) == (
        "prometheus/v1", "us-to-eu", "eu-to-us",
    )  # fmt: skip
    slos = {each["name"]: each for each in one["slos"]}
    assert slos["availability"]["objective"] == 99.9
    assert slos["completeness"]["objective"] == 99.99
    assert slos["availability"]["alerting"]["page_alert"] == {"labels": {"severity": "page"}}
    assert slos["completeness"]["alerting"]["page_alert"] == {"disable": True}
    events = slos["latency-10s"]["sli"]["events"]
    assert events["total_query"] == (
        "sum(avg by (flow, source, target, sli, tier) (increase(mm2_sli_events_total"
        '{flow="us->eu",sli="latency",tier="10s"}[{{.window}}])))'
    )
    assert events["error_query"].startswith(events["total_query"] + " - sum(avg by ")
    assert sloth.write(config("").objectives).startswith(
        "# sloth generate --default-slo-period=28d\n"
    )
    assert sloth.write(()) == ""


def test_sloth_has_one_window_for_all() -> None:
    with pytest.raises(UserError, match="these have 14d, 28d: expected one window"):
        sloth.write(config().objectives)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_sloths_queries_are_promql(tmp_path: Path) -> None:
    queries = [
        query.replace("{{.window}}", "5m")
        for document in documents(sloth.write(config("").objectives))
        for each in document["slos"]
        for query in each["sli"]["events"].values()
    ]
    rules = [{"record": f"a:b:c{n}", "expr": query} for n, query in enumerate(queries)]
    assert len(rules) == 32
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS: 32 rules found" in done.stdout
