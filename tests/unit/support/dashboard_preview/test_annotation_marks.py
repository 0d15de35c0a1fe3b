"""Annotations: regions where a series is 1, times from values, and NaN."""

from dashboard_preview import prometheus_api
from dashboard_preview.grafana_json import Annotation
from dashboard_preview.panel_data import Context, Mark, marks
from preview_fixtures import END, SPAN, FakePrometheus, matrix

CONTEXT = Context(choices={"flow": ["a"]}, all_values={}, span=SPAN, scrape=15.0)


def annotation(*, value_is_time: bool = False) -> Annotation:
    return Annotation(
        title="Alerts",
        expr="x{flow=~`${flow:regex}`}",
        text="{{name}} is firing",
        colour="#D55E00",
        value_is_time=value_is_time,
    )


def test_consecutive_points_become_one_region() -> None:
    points = {120: 1, 105: 1, 90: 0, 60: 1, 45: 2, 15: 1}
    prometheus = FakePrometheus({"x{flow=~`a`}": matrix(({"name": "a<b"}, points))})
    found = marks([annotation()], prometheus, CONTEXT, 600.0)
    assert [(END - each.start, END - each.end) for each in found] == [
        (120, 105),
        (60, 45),
        (15, 15),
    ]
    assert {(each.text, each.colour) for each in found} == {("a<b is firing", "#D55E00")}


def test_values_as_times_become_marks() -> None:
    at = (END - 30) * 1000
    before = (SPAN.start - 30) * 1000
    prometheus = FakePrometheus({"x{": matrix(({"name": "a"}, {30: before, 15: at, 0: at}))})
    found = marks([annotation(value_is_time=True)], prometheus, CONTEXT, 600.0)
    assert found == [Mark(END - 30, END - 30, "a is firing", "#D55E00")]


def test_query_range_drops_nan() -> None:
    prometheus = FakePrometheus({"x": matrix(({}, {30: 1.0, 15: float("nan"), 0: float("inf")}))})
    [found] = prometheus_api.query_range(prometheus, "x", SPAN, 15.0)
    assert found.points == ((END - 30, 1.0), (END, float("inf")))
    assert prometheus_api.query_instant(
        FakePrometheus({"1": {"resultType": "scalar", "result": [END, "1"]}}), "1", END
    ) == (({}, ((END, 1.0),)),)
