"""Every expression parses, names what is published, and survives any name that is chosen."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import promql_parser
import pytest
import yaml
from dashboard_preview.interpolation import ALL, interpolate
from dashed import Expression, dashboards, expressions, variables
from promtool import needs_promtool

from mm2slo_alerts.model import RecordingRule
from mm2slo_alerts.recording import groups
from mm2slo_alerts.recording.timing import STEP
from mm2slo_core.catalogue import ALL as METRICS
from mm2slo_core.catalogue import FLOW_LAG_SECONDS, RECORDED, MetricType
from mm2slo_core.catalogue.external import ALERTS, ALERTS_LABELS, EXTERNAL
from mm2slo_core.catalogue.reported import REPORT_GROUPS
from mm2slo_core.config.published import default_objective_rules
from mm2slo_core.dashboard_uids import DashboardUid as Identity
from mm2slo_core.promql import Vector, quoted, select
from mm2slo_dashboards.checking import names, unknown
from mm2slo_dashboards.model import DashboardUid, Kind, Panel, Query, Row, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    }


LABELS = labels()
TYPES = {name: metric.type for metric in (*METRICS, *EXTERNAL) for name in metric.sample_names}


def filled(text: str, value: str) -> str:
    return interpolate(
        text, {"flow": [value], "topic": [value], "group": [value], "sli": [value]}, builtin=BUILTIN
    )


def parse(text: str) -> object:
    """The tree of *text*. The parser reads escapes in raw strings, which Prometheus does not."""
    return promql_parser.parse(re.sub(r"`([^`]*)`", lambda raw: quoted(raw[1]), text))


def selectors(
    node: object, function: str = ""
) -> Iterator[tuple[promql_parser.VectorSelector, str]]:
    """Each selector below *node*, with the function that its range is given to."""
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
        case promql_parser.NumberLiteral():
            pass
        case _:
            raise AssertionError(f"{type(node).__name__} is not walked")


def test_every_expression_reads_what_is_published() -> None:
    assert len(expressions()) > 150
    for found in expressions():
        reads_what_is_published(found)


def reads_what_is_published(found: Expression) -> None:
    text = filled(found.text, "us->eu")
    seen = list(selectors(parse(text)))
    assert seen
    for selector, function in seen:
        assert selector.name in LABELS
        known = LABELS[selector.name]
        assert {matcher.name for matcher in selector.matchers.matchers} <= set(known)
        if function in COUNTERS and selector.name in TYPES:
            assert TYPES[selector.name] is not MetricType.GAUGE
    assert {selector.name for selector, _ in seen} == set(names(found.text))


@pytest.mark.parametrize("value", ODD)
def test_a_chosen_name_matches_itself_in_every_expression(value: str) -> None:
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


def test_what_is_recorded_slowly_is_read_over_two_of_its_steps() -> None:
    slow = {
        rule.record: group.interval >= STEP
        for group in groups(default_objective_rules())
        for rule in group.rules
        if isinstance(rule, RecordingRule)
    }
    read = {
        (selector.name, function)
        for found in expressions()
        for selector, function in selectors(parse(filled(found.text, "us->eu")))
        if selector.name in slow
    }
    assert read == {(name, "last_over_time" if slow[name] else "") for name, _ in read}
    windows = {
        window
        for found in expressions()
        for window in re.findall(r"last_over_time\([^\[]+\[(\w+)\]\)", found.text)
    }
    assert windows == {f"{2 * STEP / 60:g}m"}


def test_what_can_be_chosen_is_of_the_chosen_flow() -> None:
    flow = "label_values(mm2_flow_info, flow)"
    of_flow = "{flow=~`${flow:regex}`}"
    asked = {
        uid: {name: each["query"] for name, each in variables(found).items()}
        for uid, found in dashboards().items()
    }
    assert asked == {
        "mm2slo-overview": {"flow": flow},
        "mm2slo-flow": {"flow": flow, "topic": f"label_values(mm2_topic_info{of_flow}, topic)"},
        "mm2slo-failover": {
            "flow": flow,
            "group": f"label_values(mm2_failover_ready{of_flow}, group)",
        },
        "mm2slo-audit": {"flow": flow},
        "mm2slo-slo": {
            "flow": flow,
            "sli": f"label_values(flow:mm2_slo_objective:ratio{of_flow}, sli)",
        },
        "mm2slo-pipeline": {},
    }


def test_what_is_chosen_holds_in_every_query() -> None:
    """Where a board lets one choose a label's values, each series that has it obeys."""
    disobey = set()
    for found in expressions():
        chosen = set(variables(dashboards()[found.uid]))
        for selector, _ in selectors(parse(filled(found.text, "us->eu"))):
            name = selector.name or ""
            obeyed = {matcher.name for matcher in selector.matchers.matchers}
            if found.kind == "panel" and not chosen & set(LABELS[name]) <= obeyed:
                disobey.add((name, found.where))
    assert disobey == {
        # Of any flow, and of none: a cluster that is away, or the pipeline itself.
        (ALERTS, "Does any alert fire? A"),
        (ALERTS, "Which alerts fire, and who says what to do? A"),
    }


@needs_promtool
def test_prometheus_itself_reads_every_expression_with_every_name(tmp_path: Path) -> None:
    rules = [
        {"record": "a", "expr": filled(found.text, value)}
        for value in ODD
        for found in expressions()
    ]
    # Grafana's ranges stand as text; each rule differs from the others by a label.
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


def test_several_chosen_names_match_each_of_them_and_all_matches_any() -> None:
    text = select(FLOW_LAG_SECONDS).text + "{flow=~`${flow:regex}`}"
    several = interpolate(text, {"flow": ["us->eu", "a.b"]})
    [(selector, _)] = selectors(parse(several))
    [matcher] = selector.matchers.matchers
    assert [bool(re.fullmatch(matcher.value, each)) for each in ("us->eu", "a.b", "axb")] == [
        True,
        True,
        False,
    ]
    every = interpolate(text, {"flow": [ALL]}, everything={"flow": ".+"})
    assert every.endswith("{flow=~`.+`}")


def test_a_name_that_nobody_publishes_fails_generation() -> None:
    wrong = Vector('max by (flow) (mm2_lag_of_old{flow=~"x"} > 0)', ("flow",))
    question = Panel(
        title="Old?",
        description="Old.",
        kind=Kind.STAT,
        unit=Unit.SECONDS,
        no_data="None.",
        queries=(Query(vector=wrong),),
        leads=Identity.FLOW,
    )
    board = DashboardUid(
        identity=Identity.FLEET,
        title="x",
        description="x",
        variables=(),
        rows=(Row("x?", (question,)),),
    )
    [said] = unknown([board])
    assert said == (
        "panel 'Old?' of mm2slo-overview reads 'mm2_lag_of_old', which nobody publishes"
    )


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ('sum by (a, b) (rate(x_total{c="d_e"}[5m])) / on (a) group_left (f) y', ["x_total", "y"]),
        ("a:b:c unless on (flow) `x` or vector(0)", ["a:b:c"]),
        ("time() - max(x offset 5m) > bool 1e9", ["x"]),
        ("topk(10, x{flow=~`a`}) and y", ["x", "y"]),
    ],
)
def test_names_in_an_expression(expression: str, found: list[str]) -> None:
    assert list(names(expression)) == found
