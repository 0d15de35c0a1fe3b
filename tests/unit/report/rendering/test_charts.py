"""Geometry of the charts."""

import itertools
import re
from collections.abc import Sequence
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_report import DAY_MS, HOUR_MS, LATENCIES, NOW

from mm2slo_core.audit.unit_outcome import PERCENTILES
from mm2slo_core.objectives.error_budget import Status
from mm2slo_core.reporting.report_entry import BudgetPart
from mm2slo_core.reporting.step_counts import MINUTE_MS
from mm2slo_core.topology import Flow
from mm2slo_report.flow_audit_figures import LatencyEstimate
from mm2slo_report.rendering.report_charts import (
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    MapFlow,
    burn_down,
    end_text,
    flow_map,
    latency_chart,
)


def spent(*shares: float | None) -> list[BudgetPart]:
    first = NOW - len(shares) * DAY_MS
    return [
        BudgetPart(first + number * DAY_MS, first + (number + 1) * DAY_MS, 1.0, share)
        for number, share in enumerate(shares)
    ]


def points(path: str) -> list[tuple[float, float]]:
    figures = [float(each) for each in re.findall(r"-?[\d.]+", path)]
    return list(zip(figures[::2], figures[1::2], strict=True))


def test_burn_down_falls_by_consumption_of_each_day() -> None:
    chart = burn_down(spent(0.0, 0.5, 0.25, 0.0), UTC, whole_end=NOW)
    assert chart is not None
    line = points(chart.line)
    assert [x for x, _ in line] == pytest.approx([58, 200, 342, 484, 626], abs=0.1)
    share = [1 - (y - TOP) / (chart.zero - TOP) for _, y in line]
    assert share == pytest.approx([1, 1, 0.5, 0.25, 0.25], abs=0.002)
    assert chart.overspent == ""
    assert chart.summary == "25 % remaining. Costliest day: 11 Jul (50 % of the budget)."
    assert chart.worst is not None
    assert chart.worst[2] == "11 Jul: 50 % spent"
    assert chart.steps == "by day"


def test_burn_down_of_overspent_budget_goes_below_zero() -> None:
    chart = burn_down(spent(0.5, 1.5, 0.0), UTC, whole_end=NOW)
    assert chart is not None
    assert chart.overspent
    below = [y for _, y in points(chart.line) if y > chart.zero]
    assert len(below) == 2
    assert chart.end[1] == max(below)
    assert "-100 % remaining" in chart.summary
    # The line crosses zero a third of the way through the second day.
    crossing = next(x for x, y in points(chart.line) if y == pytest.approx(chart.zero, abs=0.06))
    assert crossing == pytest.approx(LEFT + (WIDTH - LEFT - RIGHT) * (1 + 1 / 3) / 3, abs=0.2)


def test_burn_down_of_running_period_leaves_room() -> None:
    chart = burn_down(spent(0.1, 0.1), UTC, whole_end=NOW + 2 * DAY_MS)
    assert chart is not None
    assert chart.end[0] == pytest.approx(LEFT + (WIDTH - LEFT - RIGHT) / 2)


def test_burn_down_of_minutes_has_full_width_and_clock_labels() -> None:
    start = NOW - 4 * MINUTE_MS
    shares = (0.0, 3.0, 1.0, 0.0)
    minutes = [
        BudgetPart(start + number * MINUTE_MS, start + (number + 1) * MINUTE_MS, 1.0, share)
        for number, share in enumerate(shares)
    ]
    chart = burn_down(minutes, UTC, whole_end=NOW)
    assert chart is not None
    ends = [x for x, y in points(chart.line) if y != pytest.approx(chart.zero, abs=0.06)]
    assert ends == pytest.approx([58, 200, 342, 484, 626], abs=0.1)
    assert [each.text for each in chart.columns] == ["10:26", "10:27", "10:28", "10:29"]
    assert chart.steps == "in steps of 1 min"
    assert chart.summary == ("-300 % remaining. Costliest step: 10:27 (300 % of the budget).")
    assert chart.worst is not None
    assert chart.worst[2] == "10:27: 300 % spent"


@pytest.mark.parametrize("hours", [(1,), (4, 3)])
def test_burn_down_of_a_month_that_has_just_started_is_by_day(hours: tuple[int, ...]) -> None:
    midnight = NOW - NOW % DAY_MS
    spans = [(midnight - each * HOUR_MS, midnight) for each in hours[:-1]]
    spans.append((midnight, midnight + hours[-1] * HOUR_MS))
    parts = [BudgetPart(start, end, 1.0, 0.1) for start, end in spans]
    chart = burn_down(parts, UTC, whole_end=NOW + 14 * DAY_MS)
    assert chart is not None
    assert chart.steps == "by day"
    assert [each.text for each in chart.columns] == ["13 Jul", "14 Jul"][-len(hours) :]
    assert "Costliest day" in chart.summary


def test_burn_down_steps_over_midnight_have_dates() -> None:
    start = NOW - 20 * 60 * MINUTE_MS
    steps = [
        BudgetPart(
            start + number * 30 * MINUTE_MS, start + (number + 1) * 30 * MINUTE_MS, 1.0, 0.01
        )
        for number in range(40)
    ]
    chart = burn_down(steps, UTC, whole_end=NOW)
    assert chart is not None
    assert [chart.columns[0].text, chart.columns[-1].text] == ["13 Jul 14:30", "14 Jul 08:30"]
    assert (chart.steps, len(chart.columns)) == ("in steps of 30 min", 7)


@pytest.mark.parametrize(
    ("minutes", "text"),
    [(1, "10:31"), (13 * 60 + 29, "23:59"), (13 * 60 + 30, "2026-07-15 00:00")],
)
def test_end_text_has_date_only_on_another_day(minutes: int, text: str) -> None:
    assert end_text(NOW, NOW + minutes * MINUTE_MS, UTC) == text


def test_burn_down_without_events_is_none() -> None:
    assert burn_down(spent(None, None), UTC, whole_end=NOW) is None
    assert burn_down([], UTC, whole_end=NOW) is None


@given(st.lists(st.one_of(st.none(), st.floats(0, 500)), min_size=1, max_size=60))
def test_burn_down_stays_inside_the_chart(shares: list[float | None]) -> None:
    chart = burn_down(spent(*shares), UTC, whole_end=NOW)
    if chart is None:
        return
    for x, y in points(chart.line) + points(chart.left):
        assert LEFT - 0.1 <= x <= WIDTH - RIGHT + 0.1
        assert TOP - 0.1 <= y <= HEIGHT
    assert 2 <= len(chart.rows) <= 8
    assert len(chart.columns) <= 7
    gaps = [abs(a.at - b.at) for a, b in itertools.combinations(chart.rows, 2)]
    assert min(gaps) > 12, "axis labels overlap"


def drawn(*labels: str) -> list[MapFlow]:
    return [
        MapFlow(flow=Flow.parse(each), status=Status.MET, text="running, no data")
        for each in labels
    ]


def boxes(flows: Sequence[MapFlow]) -> list[tuple[float, float, float, float]]:
    found = flow_map(flows)
    labels = [(each.label.x, each.label.y, each.label_half_width, 13.0) for each in found.edges]
    nodes = [(each.at.x, each.at.y, each.half_width, each.half_height) for each in found.nodes]
    return labels + nodes


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return abs(one[0] - other[0]) < one[2] + other[2] and abs(one[1] - other[1]) < one[3] + other[3]


SHAPES = {
    "one": drawn("us->eu"),
    "active-active": drawn("us->eu", "eu->us"),
    "fan-in": drawn("a->hq", "b->hq", "c->hq", "d->hq", "e->hq"),
    "hub both ways": drawn("a->hq", "hq->a", "b->hq", "hq->b", "c->hq", "hq->c"),
    "chain": drawn("a->b", "b->c"),
    "triangle": drawn("a->b", "b->c", "c->a"),
    "square both ways": drawn("a->b", "b->a", "b->c", "c->b", "c->d", "d->c", "d->a", "a->d"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_flow_map_labels_do_not_overlap(shape: str) -> None:
    for one, other in itertools.combinations(boxes(SHAPES[shape]), 2):
        assert not overlap(one, other), (one, other)


@pytest.mark.parametrize("shape", SHAPES)
def test_flow_map_stays_inside_its_extent(shape: str) -> None:
    found = flow_map(SHAPES[shape])
    right, bottom = found.left + found.width, found.top + found.height
    for x, y, width, height in boxes(SHAPES[shape]):
        assert found.left + width <= x <= right - width
        assert found.top + height <= y <= bottom - height
    for edge in found.edges:
        for x, y in points(edge.path) + points(edge.arrow):
            assert found.left <= x <= right
            assert found.top <= y <= bottom


def test_flow_map_arrow_ends_at_border_of_target() -> None:
    found = flow_map(drawn("us->eu"))
    (edge,) = found.edges
    target = next(each for each in found.nodes if each.name == "eu")
    tip = points(edge.arrow)[0]
    gap = abs(tip[0] - target.at.x) - target.half_width
    assert 0 <= gap <= 12
    assert tip[1] == pytest.approx(target.at.y)


def test_large_flow_map_keeps_worst_flows_and_counts_the_rest() -> None:
    found = flow_map(drawn(*(f"c{number}->c{number + 1}" for number in range(0, 100, 2))))
    assert len(found.nodes) == 14
    assert len(found.edges) == 7
    assert found.left_out == 43
    assert {each.flow.label for each in found.edges} >= {"c0->c1", "c12->c13"}


def test_long_cluster_name_is_truncated_only_in_map() -> None:
    (node, _) = flow_map(drawn("a-cluster-with-a-very-long-alias->b")).nodes
    assert node.name == "a-cluster-with-a-very-long-alias"
    assert node.shown == "a-cluster-with-a-…"


def test_latency_chart_has_logarithmic_axis() -> None:
    chart = latency_chart(LATENCIES[0], [10.0, 10.0])
    assert [tick.text for tick in chart.ticks] == ["10 ms", "100 ms", "1 s", "10 s", "100 s"]
    steps = [after.at - before.at for before, after in itertools.pairwise(chart.ticks)]
    assert max(steps) == pytest.approx(min(steps))
    assert [each.text for each in chart.thresholds] == ["10 s"]
    assert [each.name for each in chart.bars] == ["p50", "p90", "p95", "p99", "p99.9"]
    assert all(bar.start <= bar.end for bar in chart.bars)
    # A bar with an unknown lower bound starts at the axis.
    assert chart.bars[-1].start == chart.ticks[0].at
    assert [bar.open for bar in chart.bars] == [False] * 4 + [True]
    assert chart.summary.startswith("p50 81 ms to 126 ms; p90 310 ms to 420 ms")


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=5))
def test_latency_bars_stay_inside_the_chart(uppers: list[float]) -> None:
    view = LATENCIES[0]
    found = {
        q: LatencyEstimate(each / 2, each) for q, each in zip(PERCENTILES, uppers, strict=False)
    }
    chart = latency_chart(type(view)(flow=view.flow, origin="", records=1, percentiles=found))
    for bar in chart.bars:
        assert LEFT <= bar.start <= bar.end <= WIDTH
