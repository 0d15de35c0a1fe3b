"""Every expression parses, reads published series, and works for any selected name."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import promql_parser
import pytest
import yaml
from dashboard_preview.interpolation import ALL, interpolate
from generated_dashboards import Expression, dashboards, expressions, variables
from promtool import needs_promtool

from mm2slo_alerts.alert_rules import RecordingRule
from mm2slo_alerts.objective_series import STEP
from mm2slo_alerts.recording_rules import recording_groups
from mm2slo_core.catalogue import ALL as METRICS
from mm2slo_core.catalogue.flow_metrics import FLOW_LAG_SECONDS
from mm2slo_core.catalogue.metric import MetricType
from mm2slo_core.catalogue.prometheus_series import (
    ALERTS,
    ALERTS_FOR_STATE,
    ALERTS_LABELS,
    EXTERNAL,
    RECORDED,
)
from mm2slo_core.catalogue.promql import Vector, quoted, select
from mm2slo_core.catalogue.service_metrics import REPORT_GROUPS
from mm2slo_core.config.config_model import default_objective_rules
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_files import find_series, find_unknown_series
from mm2slo_dashboards.dashboard_model import Dashboard, Kind, Panel, PanelUnit, Row

ODD = [
    "us->eu",
    "plain",
    'say "hi"',
    "it's",
    "a/b\\c",
    ".*|+?(x)[y]{z}^$",
    "$flow ${topic:regex} $1",
    "größe, 100 %",
    "{{label}}",
]
BUILTIN = {"__rate_interval": "1m", "__range": "6h", "__interval": "15s"}
COUNTERS = {"rate", "increase", "irate"}


def labels() -> dict[str, tuple[str, ...]]:
    reported = [metric for group in REPORT_GROUPS.values() for metric in group]
    scraped = ("job", "instance", "le")
    return {
        **{
            name: (*metric.labels, *scraped)
            for metric in (*METRICS, *EXTERNAL, *reported)
            for name in metric.sample_names
        },
        **{series.name: series.labels for series in RECORDED},
        ALERTS: ALERTS_LABELS,
        ALERTS_FOR_STATE: ALERTS_LABELS,
    }


LABELS = labels()
TYPES = {name: metric.type for metric in (*METRICS, *EXTERNAL) for name in metric.sample_names}


def fill(text: str, value: str) -> str:
    return interpolate(
        text, {"flow": [value], "topic": [value], "group": [value], "sli": [value]}, builtin=BUILTIN
    )


def parse(text: str) -> object:
    """The syntax tree of *text*. Unlike Prometheus, the parser reads escapes in raw strings."""
    return promql_parser.parse(re.sub(r"`([^`]*)`", lambda raw: quoted(raw[1]), text))


def selectors(
    node: object, function: str = ""
) -> Iterator[tuple[promql_parser.VectorSelector, str]]:
    """Each selector below *node*, with the function of its range."""
    match node:
        case promql_parser.VectorSelector():
            yield node, function
        case promql_parser.MatrixSelector():
            yield node.vector_selector, function
        case promql_parser.Call():
            for each in node.args:
                yield from selectors(each, node.func.name)
        case promql_parser.BinaryExpr():
            yield from selectors(node.lhs)
            yield from selectors(node.rhs)
        case promql_parser.AggregateExpr() | promql_parser.ParenExpr() | promql_parser.UnaryExpr():
            yield from selectors(node.expr, function)
        case promql_parser.NumberLiteral() | promql_parser.StringLiteral():
            pass
        case _:
            raise AssertionError(f"{type(node).__name__} is not supported")


def test_expressions_read_published_series_and_labels() -> None:
    assert len(expressions()) > 120
    for found in expressions():
        check_published(found)


def check_published(found: Expression) -> None:
    text = fill(found.text, "us->eu")
    seen = list(selectors(parse(text)))
    assert seen
    for selector, function in seen:
        assert selector.name in LABELS
        known = LABELS[selector.name]
        assert {matcher.name for matcher in selector.matchers.matchers} <= set(known)
        if function in COUNTERS and selector.name in TYPES:
            assert TYPES[selector.name] is not MetricType.GAUGE
    assert {selector.name for selector, _ in seen} == set(find_series(found.text))


@pytest.mark.parametrize("value", ODD)
def test_selected_value_matches_only_itself(value: str) -> None:
    choices = {"flow": [value], "topic": [value], "group": [value], "sli": [value]}
    reached = 0
    for found in expressions():
        text = interpolate(found.text, choices, builtin=BUILTIN)
        for selector, _ in selectors(parse(text)):
            for matcher in selector.matchers.matchers:
                if matcher.name in choices and matcher.op == promql_parser.MatchOp.Re:
                    assert re.fullmatch(matcher.value, value), found.where
                    assert not re.fullmatch(matcher.value, f"{value}x"), found.where
                    reached += 1
    assert reached > 100


def test_series_recorded_every_step_are_read_over_two_steps_or_summed() -> None:
    slow = {
        rule.record: group.interval >= STEP
        for group in recording_groups(default_objective_rules())
        for rule in group.rules
        if isinstance(rule, RecordingRule)
    }
    read = {
        (selector.name, function)
        for found in expressions()
        for selector, function in selectors(parse(fill(found.text, "us->eu")))
        if selector.name in slow
    }
    over_time = {"last_over_time", "sum_over_time"}
    assert {name for name, function in read if function in over_time} == {
        name for name, _ in read if slow[name]
    }
    windows = {
        window
        for found in expressions()
        for window in re.findall(r"last_over_time\([^\[]+\[(\w+)\]\)", found.text)
    }
    assert windows == {f"{2 * STEP / 60:g}m"}


def test_variables_depend_on_selected_flow() -> None:
    flow = "label_values(mm2_flow_info, flow)"
    in_flow = "{flow=~`${flow:regex}`}"
    found = {
        uid: {name: each["query"] for name, each in variables(dashboard).items()}
        for uid, dashboard in dashboards().items()
    }
    assert found == {
        "mm2slo-overview": {"flow": flow},
        "mm2slo-flow": {"flow": flow, "topic": f"label_values(mm2_topic_info{in_flow}, topic)"},
        "mm2slo-failover": {
            "flow": flow,
            "group": f"label_values(mm2_failover_ready{in_flow}, group)",
        },
        "mm2slo-audit": {"flow": flow},
        "mm2slo-slo": {
            "flow": flow,
            "sli": f"label_values(flow:mm2_slo_objective:ratio{in_flow}, sli)",
        },
        "mm2slo-pipeline": {},
    }


def test_queries_match_all_variables_of_their_labels() -> None:
    unmatched = set()
    for found in expressions():
        chosen = set(variables(dashboards()[found.uid]))
        for selector, _ in selectors(parse(fill(found.text, "us->eu"))):
            name = selector.name or ""
            matched = {matcher.name for matcher in selector.matchers.matchers}
            if found.kind == "panel" and not chosen & set(LABELS[name]) <= matched:
                unmatched.add((name, found.where))
    assert unmatched == {
        # Alerts of any flow or of none, as of an unreachable cluster.
        (ALERTS, "Firing alerts by severity A"),
        (ALERTS, "Firing alerts A"),
        # The watchdog, without which the number of alerts is unknown.
        (ALERTS, "Flow status B"),
    }


@needs_promtool
def test_promtool_accepts_every_expression_with_odd_names(tmp_path: Path) -> None:
    rules = [
        {"record": "a", "expr": fill(found.text, value)} for value in ODD for found in expressions()
    ]
    # A label distinguishes the rules.
    for number, rule in enumerate(rules):
        rule["labels"] = {"n": str(number)}  # type: ignore[assignment]
    (tmp_path / "rules.yml").write_text(
        yaml.dump({"groups": [{"name": "all", "rules": rules}]}, Dumper=yaml.CSafeDumper)
    )
    said = subprocess.run(
        ["promtool", "check", "rules", "--lint=none", tmp_path / "rules.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{len(rules)} rules found" in said.stdout


def test_multiple_values_match_each_and_all_matches_any() -> None:
    text = select(FLOW_LAG_SECONDS).text + "{flow=~`${flow:regex}`}"
    several = interpolate(text, {"flow": ["us->eu", "a.b"]})
    [(selector, _)] = selectors(parse(several))
    [matcher] = selector.matchers.matchers
    assert [bool(re.fullmatch(matcher.value, each)) for each in ("us->eu", "a.b", "axb")] == [
        True,
        True,
        False,
    ]
    every = interpolate(text, {"flow": [ALL]}, all_values={"flow": ".+"})
    assert every.endswith("{flow=~`.+`}")


def test_find_unknown_series_reports_panel_and_series() -> None:
    wrong = Vector('max by (flow) (mm2_lag_of_old{flow=~"x"} > 0)', ("flow",))
    panel = Panel(
        title="Age",
        description="How old is it? In seconds.",
        kind=Kind.STAT,
        unit=PanelUnit.SECONDS,
        no_data="None.",
        queries={"": wrong},
        next_dashboard=DashboardUid.FLOW,
    )
    dashboard = Dashboard(
        uid=DashboardUid.FLEET,
        title="x",
        description="x",
        variables=(),
        rows=(Row("x?", (panel,)),),
    )
    [said] = find_unknown_series([dashboard])
    assert said == ("panel 'Age' of mm2slo-overview reads 'mm2_lag_of_old', an unknown series")


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ('sum by (a, b) (rate(x_total{c="d_e"}[5m])) / on (a) group_left (f) y', ["x_total", "y"]),
        ("a:b:c unless on (flow) `x` or vector(0)", ["a:b:c"]),
        ("time() - max(x offset 5m) > bool 1e9", ["x"]),
        ("topk(10, x{flow=~`a`}) and y", ["x", "y"]),
    ],
)
def test_find_series_returns_series_names_only(expression: str, found: list[str]) -> None:
    assert list(find_series(expression)) == found
