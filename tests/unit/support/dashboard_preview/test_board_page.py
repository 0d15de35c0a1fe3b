"""Whole pages: no external resources, no injection by names."""

import re
from xml.etree import ElementTree as ET

import pytest
from generated_dashboards import dashboards
from preview_fixtures import FakePrometheus, draw_page, panel_html, vector, visible_texts

ODD = '</style><script>alert("1")</script>&amp; \'$x` /'
RUNNING = vector(({"flow": ODD}, 0))


def test_page_has_no_external_resources() -> None:
    for document in dashboards().values():
        html = draw_page(document, FakePrometheus()).html
        assert "<script" not in html
        assert not re.findall(r'(?:src|href)="(?!data:,"|mm2slo-|mine\.)[^"]*"', html)
        assert "url(" not in html
        assert "default-src 'none'" in html.replace("&#x27;", "'")


def test_names_are_escaped() -> None:
    prometheus = FakePrometheus({"mm2_flow_state": RUNNING}, {"flow": [ODD]})
    html = draw_page(dashboards()["mm2slo-overview"], prometheus, flow=ODD).html
    assert "<script" not in html
    assert ODD in visible_texts(html)
    # As XML, every element must be closed.
    body = re.sub(r"<(meta|link)[^>]*>", "", html.removeprefix("<!DOCTYPE html>"))
    ET.fromstring(body)  # noqa: S314 - a generated page


def test_empty_panels_show_no_data_text() -> None:
    for document in dashboards().values():
        html = draw_page(document, FakePrometheus()).html
        for each in document["panels"]:
            if each["type"] != "row":
                texts = visible_texts(panel_html(html, each["title"]))
                assert each["fieldConfig"]["defaults"]["noValue"] in texts


def test_panels_are_placed_in_grafana_grid() -> None:
    document = dashboards()["mm2slo-overview"]
    found = draw_page(document, FakePrometheus())
    places = re.findall(r"left:([\d.]+)px;top:(\d+)px;width:([\d.]+)px;height:(\d+)px", found.html)
    assert len(places) == len(document["panels"])
    for (left, top, width, height), each in zip(places, document["panels"], strict=True):
        grid = each["gridPos"]
        assert float(left) == pytest.approx(grid["x"] * (1408 + 8) / 24, abs=0.1)
        assert float(width) == pytest.approx(grid["w"] * (1408 + 8) / 24 - 8, abs=0.1)
        assert (int(top), int(height)) == (grid["y"] * 38, grid["h"] * 38 - 8)
    lowest = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in document["panels"])
    assert found.height == 88 + lowest * 38 + 8 + 30


def test_charts_show_annotations_with_text() -> None:
    alert = {"severity": "page", "alertname": "MM2FlowStopped", "flow": "us->eu"}
    end = 1_700_000_100.0
    times = [end - ago for ago in (60, 45, 30)]
    since = [[at, f"{(end - 300) * 1000}"] for at in times]
    fires = {"resultType": "matrix", "result": [{"metric": alert, "values": since}]}
    points = [[at, "1"] for at in times]
    lag = {"resultType": "matrix", "result": [{"metric": {"flow": "us->eu"}, "values": points}]}
    found = draw_page(
        dashboards()["mm2slo-overview"], FakePrometheus({"ALERTS": fires, "topk": lag})
    )
    html = panel_html(found.html, "Highest lag by flow")
    assert html.count("page: MM2FlowStopped became active</title>") == 1
    # A line five minutes before the end, not a band.
    assert 'class="shade"' not in html
