"""What the less obvious queries answer: Prometheus's own test program is given the series."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dashboard_preview.interpolation import ALL, interpolate
from dashed import dashboards, panels
from promtool import evaluate, needs_promtool

from mm2slo_core.promql import quoted

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_promtool

A = 'flow="us->eu",source="us",target="eu",job="mm2slo",instance="1"'
B = 'flow="us->eu",source="us",target="eu",job="mm2slo",instance="2"'
ODD = 'it\'s "a" $group.*/\\d'
LITERAL = quoted(ODD)
SERIES = {
    # Replicas disagree: the gravest state is told.
    f'mm2_flow_state{{{A},state="running"}}': "1",
    f'mm2_flow_state{{{A},state="idle"}}': "0",
    f'mm2_flow_state{{{A},state="unknown"}}': "0",
    f'mm2_flow_state{{{A},state="stopped"}}': "0",
    f'mm2_flow_state{{{B},state="running"}}': "0",
    f'mm2_flow_state{{{B},state="idle"}}': "0",
    f'mm2_flow_state{{{B},state="unknown"}}': "0",
    f'mm2_flow_state{{{B},state="stopped"}}': "1",
    f'mm2_failover_ready{{{A},group="g1"}}': "1",
    f'mm2_failover_ready{{{B},group="g1"}}': "1",
    f'mm2_failover_ready{{{A},group="g2"}}': "0",
    f"mm2_failover_ready{{{A},group={LITERAL}}}": "0",
    f'mm2_replicated_records_total{{{A},topic="t"}}': "60",
    f'mm2_replicated_records_total{{{B},topic="t"}}': "60",
    f'mm2_replicated_records_total{{{A},topic="u"}}': "120",
    f'flow:mm2_slo_budget_remaining:ratio{{{A},sli="availability",tier="all"}}': "-0.5",
    f'flow:mm2_slo_budget_remaining:ratio{{{A},sli="latency",tier="10s"}}': "0.5",
}
GROWING = ("mm2_replicated_records_total",)
CASES: list[tuple[str, str, int, dict[str, float]]] = [
    ("mm2slo-overview", "Which flows need attention first?", 0, {'{flow="us->eu"}': 3}),
    ("mm2slo-overview", "Which flows need attention first?", 6, {'{flow="us->eu"}': 2}),
    ("mm2slo-flow", "In which state is it?", 0, {'{flow="us->eu"}': 3}),
    # 1 a second of one topic, seen twice, and 2 of another.
    ("mm2slo-flow", "Does it keep up?", 1, {'{flow="us->eu"}': 3}),
    ("mm2slo-failover", "How many groups are ready?", 0, {"{}": 1}),
    ("mm2slo-failover", "How many groups are ready?", 1, {"{}": 2}),
    ("mm2slo-slo", "How many budgets are used up?", 0, {"{}": 1}),
    ("mm2slo-slo", "Which budget is nearest to its end?", 0, {"{}": -0.5}),
]


def query(uid: str, title: str, number: int, **chosen: str) -> str:
    [panel] = [each for each in panels(dashboards()[uid]) if each["title"] == title]
    choices = {name: [chosen.get(name, ALL)] for name in ("flow", "topic", "group", "sli")}
    return interpolate(
        panel["targets"][number]["expr"],
        choices,
        everything={"flow": ".+", "topic": ".*", "group": ".+", "sli": ".+"},
        builtin={"__rate_interval": "4m", "__range": "1h"},
    )


def answers(folder: Path, expected: dict[str, dict[str, float]]) -> None:
    """Let promtool compare, ten minutes into the series."""
    inputs = {
        name: f"0+{value}x10" if name.startswith(GROWING) else f"{value}x10"
        for name, value in SERIES.items()
    }
    asked = {(expression, "10m"): found for expression, found in expected.items()}
    evaluate(folder, [], inputs, asked, interval="1m")


def test_queries_answer_their_question(tmp_path: Path) -> None:
    answers(tmp_path, {query(uid, title, n): found for uid, title, n, found in CASES})


@pytest.mark.parametrize(
    ("group", "found"),
    [
        ("g2", {'{flow="us->eu",group="g2"}': 0}),
        (ODD, {f'{{flow="us->eu",group={LITERAL}}}': 0}),
        ("g.", {}),
    ],
)
def test_a_chosen_name_is_found_by_itself_alone(
    tmp_path: Path, group: str, found: dict[str, float]
) -> None:
    asked = query("mm2slo-failover", "Which groups would resume, and which not?", 0, group=group)
    answers(tmp_path, {asked: found})
