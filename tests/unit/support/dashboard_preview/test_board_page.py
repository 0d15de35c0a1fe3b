"""A whole page: nothing from elsewhere, nothing that a name could inject, and what was refused."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from dashed import dashboards
from preview_fixtures import Told, page, panel, vector, words

from mm2slo_core.user_errors import UserError

ODD = '</style><script>alert("1")</script>&amp; \'$x` /'
RUNNING = vector(({"flow": ODD}, 0))


def test_a_page_needs_nothing_from_elsewhere() -> None:
    for document in dashboards().values():
        html = page(document, Told()).html
        assert "<script" not in html
        assert not re.findall(r'(?:src|href)="(?!data:,"|mm2slo-|mine\.)[^"]*"', html)
        assert "url(" not in html
        assert "default-src 'none'" in html.replace("&#x27;", "'")


def test_a_name_stays_text() -> None:
    told = Told({"mm2_flow_state": RUNNING}, {"flow": [ODD]})
    html = page(dashboards()["mm2slo-overview"], told, flow=ODD).html
    assert "<script" not in html
    assert ODD in words(html)
    # Read as XML every element is closed where it should be.
    body = re.sub(r"<(meta|link)[^>]*>", "", html.removeprefix("<!DOCTYPE html>"))
    ET.fromstring(body)  # noqa: S314 - a page of ours


def test_each_panel_says_what_no_data_means() -> None:
    for document in dashboards().values():
        html = page(document, Told()).html
        for each in document["panels"]:
            if each["type"] != "row":
                said = words(panel(html, each["title"]))
                assert each["fieldConfig"]["defaults"]["noValue"] in said


def test_panels_stand_in_grafanas_grid() -> None:
    document = dashboards()["mm2slo-overview"]
    found = page(document, Told())
    places = re.findall(r"left:([\d.]+)px;top:(\d+)px;width:([\d.]+)px;height:(\d+)px", found.html)
    assert len(places) == len(document["panels"])
    for (left, top, width, height), each in zip(places, document["panels"], strict=True):
        grid = each["gridPos"]
        assert float(left) == pytest.approx(grid["x"] * (1408 + 8) / 24, abs=0.1)
        assert float(width) == pytest.approx(grid["w"] * (1408 + 8) / 24 - 8, abs=0.1)
        assert (int(top), int(height)) == (grid["y"] * 38, grid["h"] * 38 - 8)
    lowest = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in document["panels"])
    assert (found.width, found.height) == (1440, 88 + lowest * 38 + 8 + 30)


def test_a_refused_query_stands_in_its_panel_and_is_told() -> None:
    told = Told(refuses="mm2_flow_lag_seconds")
    found = page(dashboards()["mm2slo-overview"], told)
    title = "How far behind is the worst flow?"
    assert "A: parse error: unexpected end of input" in words(panel(found.html, title))
    assert f"mine: panel {title!r}, query A: parse error: unexpected end of input" in {
        each.replace("mm2slo-overview", "mine") for each in found.refused
    }
    # A table tells which of its queries it was.
    assert any("query D: parse error" in each for each in found.refused)


def test_refused_variables_and_marks_are_told() -> None:
    found = page(dashboards()["mm2slo-flow"], Told(refuses="mm2_flow_info"))
    assert found.refused == ("mm2slo-flow: variable 'flow': parse error: unexpected end of input",)
    assert "None" in words(found.html)
    found = page(dashboards()["mm2slo-flow"], Told(refuses="ALERTS", values={"flow": ["a"]}))
    assert found.refused[0].startswith("mm2slo-flow: annotation 'Alerts': ")


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (
            {"flow": "us->ue"},
            r"'flow': unknown value 'us->ue'; expected one of \['eu->us', 'us->eu'\]",
        ),
        ({"topic": "t"}, r"'topic': unknown value 't'; expected one of \[\]"),
    ],
)
def test_a_chosen_value_that_nobody_knows_is_refused(chosen: dict[str, Any], said: str) -> None:
    told = Told(values={"flow": ["eu->us", "us->eu"]})
    with pytest.raises(UserError, match=said):
        page(dashboards()["mm2slo-flow"], told, **chosen)


def test_marks_stand_in_charts_with_their_text() -> None:
    alert = {"severity": "page", "alertname": "MM2FlowStopped", "flow": "us->eu"}
    points = [[1_700_000_100.0 - ago, "1"] for ago in (60, 45, 30)]
    fires = {"resultType": "matrix", "result": [{"metric": alert, "values": points}]}
    lag = {"resultType": "matrix", "result": [{"metric": {"flow": "us->eu"}, "values": points}]}
    found = page(dashboards()["mm2slo-overview"], Told({"ALERTS": fires, "topk": lag}))
    html = panel(found.html, "Which flows are furthest behind?")
    assert "page: MM2FlowStopped fires</title>" in html
    [(x, wide)] = re.findall(r'<rect x="([\d.]+)" y="6" width="([\d.]+)"[^>]*class="shade"', html)
    area = float(re.search(r'<line x1="([\d.]+)"[^>]*x2="([\d.]+)"', html)[2])  # type: ignore[index]
    # Half a minute of ten, which ended half a minute before the end.
    assert (area - float(x)) / float(wide) == pytest.approx(2.0, abs=0.01)
