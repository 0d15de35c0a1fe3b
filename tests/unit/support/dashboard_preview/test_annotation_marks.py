"""Marks: regions where a series is 1, moments that a series tells, and what is no value."""

from __future__ import annotations

from dashboard_preview import prometheus_api
from dashboard_preview.annotation_marks import Mark, marks
from dashboard_preview.grafana_json.dashboard_json import Marks
from dashboard_preview.panel_data import Context
from preview_fixtures import END, SPAN, Told, matrix

CONTEXT = Context(choices={"flow": ["a"]}, everything={}, span=SPAN, scrape=15.0)


def annotation(*, at_value: bool = False) -> Marks:
    return Marks(
        title="Alerts", expr="x{flow=~`${flow:regex}`}", text="{{name}} fires", colour="#D55E00",
        at_value=at_value,
    )  # fmt: skip


def test_points_that_follow_each_other_are_one_region() -> None:
    points = {120: 1, 105: 1, 90: 0, 60: 1, 45: 2, 15: 1}
    told = Told({"x{flow=~`a`}": matrix(({"name": "a<b"}, points))})
    found, refused = marks([annotation()], told, CONTEXT, 600.0)
    assert refused == ()
    assert [(END - each.start, END - each.end) for each in found] == [
        (120, 105),
        (60, 45),
        (15, 15),
    ]
    assert {(each.text, each.colour) for each in found} == {("a<b fires", "#D55E00")}


def test_values_may_be_the_times() -> None:
    at = (END - 30) * 1000
    before = (SPAN.start - 30) * 1000
    told = Told({"x{": matrix(({"name": "a"}, {30: before, 15: at, 0: at}))})
    found, _ = marks([annotation(at_value=True)], told, CONTEXT, 600.0)
    assert found == (Mark(END - 30, END - 30, "a fires", "#D55E00"),)


def test_what_is_no_number_is_no_point() -> None:
    told = Told({"x": matrix(({}, {30: 1.0, 15: float("nan"), 0: float("inf")}))})
    [found] = prometheus_api.course(told, "x", SPAN, 15.0)
    assert found.points == ((END - 30, 1.0), (END, float("inf")))
    assert prometheus_api.now(
        Told({"1": {"resultType": "scalar", "result": [END, "1"]}}), "1", END
    ) == (({}, ((END, 1.0),)),)
