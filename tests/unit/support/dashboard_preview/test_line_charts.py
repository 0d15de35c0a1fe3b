"""Line charts: positions of points, axes and legend."""

import re
from typing import Any

import pytest
from dashboard_preview.panel_data import Mark
from dashboard_preview.panels import chart_frame as framing
from dashboard_preview.time_range import Span
from preview_fixtures import (
    FakePrometheus,
    dashboard_json,
    draw_page,
    matrix,
    panel_html,
    vector,
    visible_texts,
)

STEPS = {"mode": "absolute", "steps": [{"color": "#009E73", "value": None}]}
CUSTOM = {"stacking": {"mode": "none", "group": "A"}, "thresholdsStyle": {"mode": "off"}}


def series(expr: str = "lag", **defaults: Any) -> dict[str, Any]:
    custom = {**CUSTOM, **defaults.pop("custom", {})}
    return {
        "type": "timeseries",
        "title": "Lag",
        "description": "How far behind is it?",
        "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8},
        "targets": [
            {
                "refId": "A",
                "expr": expr,
                "legendFormat": "{{flow}}",
                "instant": False,
                "format": "time_series",
            }
        ],
        "transformations": [],
        "options": {
            "legend": {
                "calcs": ["lastNotNull"],
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": True,
            }
        },
        "fieldConfig": {
            "defaults": {
                "unit": "s",
                "noValue": "No unreplicated records.",
                "color": {"mode": "palette-classic"},
                "thresholds": STEPS,
                "custom": custom,
                **defaults,
            },
            "overrides": [],
        },
        "links": [],
    }


def drawn(answer: dict[str, Any], **defaults: Any) -> str:
    found = draw_page(dashboard_json(series(**defaults)), FakePrometheus({"lag": answer}))
    return panel_html(found.html, "Lag")


def paths(html: str) -> list[list[tuple[float, float]]]:
    """The segments of the first line."""
    [path] = re.findall(r'<path d="([^"]*)"', html)[:1]
    return [
        [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", run)]
        for run in path.split("M")[1:]
    ]


def levels(html: str) -> dict[str, float]:
    """The height of each level by its text."""
    [axis] = re.findall(r'<g class="axis levels">(.*?)</g>', html)
    heights = [float(each) for each in re.findall(r'<line [^>]*y1="([\d.]+)"', axis)]
    return dict(zip(re.findall(r">([^<]+)</text>", axis), heights, strict=True))


def test_points_are_at_their_time_and_value() -> None:
    html = drawn(matrix(({"flow": "a"}, {600: 0.0, 300: 60.0, 0: 30.0})), min=0, max=60)
    # With a step of 15 s, points five minutes apart are not joined.
    [first], [middle], [last] = paths(html)
    assert (first[0] + last[0]) / 2 == pytest.approx(middle[0], abs=0.01)
    at = levels(html)
    assert {"0 s", "30 s", "1 min"} <= set(at)
    assert (first[1], middle[1], last[1]) == pytest.approx(
        (at["0 s"], at["1 min"], at["30 s"]), abs=0.01
    )


def test_adjacent_points_are_joined_and_gaps_are_kept() -> None:
    html = drawn(matrix(({"flow": "a"}, {60: 1.0, 45: 2.0, 30: 2.0, 0: 4.0})))
    assert [len(run) for run in paths(html)] == [3, 1]


def test_axis_ends_are_fixed_or_padded_around_values() -> None:
    values = ({"flow": "a"}, {15: 100.0, 0: 200.0})
    fixed = levels(drawn(matrix(values), min=0, max=240))
    assert {"0 s", "4 min"} <= set(fixed)
    free = levels(drawn(matrix(values), unit="short"))
    # From 90 to 210: a tenth of their distance around them.
    assert {"100", "200"} <= set(free)
    assert not {"80", "220"} & set(free)
    assert "0" in levels(drawn(matrix(({"flow": "a"}, {15: 1.0, 0: 30.0})), unit="short"))


def test_values_beyond_fixed_end_are_clipped() -> None:
    html = drawn(matrix(({"flow": "a"}, {15: 5.0, 0: float("inf")})), min=0, max=1)
    [clip] = re.findall(r'<svg [^>]*height="([\d.]+)"[^>]*class="clipped"', html)
    [run] = paths(html)
    assert run[0][1] < -float(clip)
    assert "inf" not in html


def test_legend_shows_names_and_latest_values() -> None:
    answer = matrix(({"flow": "a<b>"}, {15: 1.0, 0: 90.0}), ({"flow": 'b"&'}, {0: 0.25}))
    html = drawn(answer)
    texts = visible_texts(html)
    assert texts[-4:] == ["a<b>", "Last *: 1.5 min", 'b"&', "Last *: 250 ms"]
    strokes = re.findall(r'stroke="(#\w+)" class="line"', html)
    assert strokes == ["#73BF69", "#F2CC0C"]


def test_stacked_series_are_added() -> None:
    answer = matrix(({"flow": "a"}, {0: 1.0}), ({"flow": "b"}, {0: 2.0}))
    stacked = {"fillOpacity": 20, "stacking": {"mode": "normal", "group": "A"}}
    html = drawn(answer, min=0, max=4, unit="short", custom=stacked)
    tops = [float(each.split(" ")[1].rstrip("h0")) for each in re.findall(r'd="M([^"]*)h0"', html)]
    at = levels(html)
    assert tops == pytest.approx([at["1"], at["3"]], abs=0.01)
    assert html.count("<polygon") == 2


def test_thresholds_within_axis_are_dashed_lines() -> None:
    steps = {
        "mode": "absolute",
        "steps": [
            {"color": "#009E73", "value": None},
            {"color": "#E69F00", "value": 30.0},
            {"color": "#D55E00", "value": 600.0},
        ],
    }
    dashed = {"thresholdsStyle": {"mode": "dashed"}}
    html = drawn(matrix(({"flow": "a"}, {0: 60.0})), min=0, thresholds=steps, custom=dashed)
    [bounds] = re.findall(r'<g class="bounds">(.*?)</g>', html)
    assert re.findall(r'y1="(-?[\d.]+)".*?stroke="(#\w+)"', bounds) == [
        (f"{levels(html)['30 s']:g}", "#E69F00")
    ]
    assert 'class="bounds"' not in drawn(matrix(({"flow": "a"}, {0: 60.0})), thresholds=steps)


def test_panel_without_data_shows_no_data_text() -> None:
    assert visible_texts(drawn(vector())) == ["Lag", "No unreplicated records."]


def test_marks_are_regions_or_lines_within_area() -> None:
    frame = framing.framed(Span(0.0, 100.0), (520.0, 128.0), 0.0, (0.0, 1.0))
    assert (frame.left, frame.right, frame.x(50.0), frame.y(0.5)) == (8.0, 508.0, 258.0, 56.0)
    html = framing.marked(
        frame,
        [
            Mark(-50.0, 50.0, 'a "fire" & more', "#D55E00"),
            Mark(75.0, 75.0, "once", "#0072B2"),
            Mark(-9.0, -1.0, "before", "#0072B2"),
        ],
    )
    assert "<title>a &quot;fire&quot; &amp; more</title>" in html
    assert '<rect x="8" y="6" width="250"' in html
    assert html.count('class="shade"') == 1
    assert re.findall(r'x1="([\d.]+)"[^>]*class="mark"', html) == ["8", "258", "383"]
    assert "before" not in html


def test_panel_interval_and_time_range_apply() -> None:
    prometheus = FakePrometheus()
    own = {**series("x[$__range]"), "interval": "5m", "maxDataPoints": 3000, "timeFrom": "1d"}
    html = draw_page(dashboard_json(own), prometheus).html
    [request] = [given for path, given in prometheus.requests if path == "query_range"]
    # A point for each of 3,000 would be every 30 s.
    assert (request["query"], request["step"]) == ("x[1d]", "300.000")
    assert float(request["end"]) - float(request["start"]) == 86_400.0
    assert visible_texts(panel_html(html, "Lag"))[:2] == ["Lag", "Last 1 day"]


def test_panel_has_at_most_its_points() -> None:
    prometheus = FakePrometheus()
    draw_page(dashboard_json({**series(), "maxDataPoints": 20}), prometheus)
    [request] = [given for path, given in prometheus.requests if path == "query_range"]
    assert request["step"] == "30.000"
