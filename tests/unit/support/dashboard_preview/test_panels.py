"""Stats, bars, tables and timelines of the generated dashboards, with fake data."""

import re
from typing import Any

import pytest
from dashboard_preview.data_frames import Series
from dashboard_preview.panels.timelines import Piece, pieces
from generated_dashboards import dashboards
from preview_fixtures import (
    END,
    SPAN,
    FakePrometheus,
    draw_page,
    matrix,
    panel_html,
    vector,
    visible_texts,
)

A, B, C = {"flow": "us->eu"}, {"flow": "eu->us"}, {"flow": "ap->us"}
GOOD, BAD, NEUTRAL = "#009E73", "#D55E00", "#0072B2"


def html(uid: str, title: str, answers: dict[str, Any], **values: list[str]) -> str:
    return panel_html(draw_page(dashboards()[uid], FakePrometheus(answers, values)).html, title)


def styled(found: str) -> list[tuple[str, ...]]:
    """The style and text of each styled cell and value."""
    return re.findall(r'<(?:td|div|b)[^>]*style="([^"]*)"[^>]*>(?:<a[^>]*>)?([^<]+)<', found)


def test_stat_values_are_coloured_by_name_and_threshold() -> None:
    states = vector(({"state": "running"}, 3), ({"state": "stopped"}, 0), ({"state": "idle"}, 1))
    found = html("mm2slo-overview", "Flows by state", {"mm2_flow_state": states})
    assert visible_texts(found)[1:] == ["running", "3", "stopped", "0", "idle", "1"]
    assert re.findall(r'<div style="color:(#\w+)"', found) == [GOOD, NEUTRAL, "#56B4E9"]


def test_single_state_fills_panel_with_its_colour() -> None:
    found = html("mm2slo-flow", "Flow state", {"mm2_flow_state": vector((A, 3))})
    assert visible_texts(found)[1:] == ["us->eu", "stopped"]
    assert f"background:{BAD};color:#ffffff" in found
    assert "grid-template-columns:repeat(1,1fr)" in found


def test_many_values_show_their_full_names() -> None:
    states = ("finished", "running", "failed")
    answer = vector(*(({"state": each}, 3) for each in states))
    found = html("mm2slo-audit", "Audit runs by state", {"mm2_audit_runs": answer})
    assert visible_texts(found)[1:] == [text for each in states for text in (each, "3")]


def test_table_has_ordered_columns_and_worst_row_first() -> None:
    answers = {
        "mm2_flow_state": vector((A, 0), (B, 3)),
        "budget_remaining": vector((A, 1), (B, -2.5), (C, 0.2)),
        "mm2_flow_lag_seconds": vector((A, 0.25), (B, 90)),
        "mm2_flow_lag_records": vector((B, 12_345)),
    }
    found = html("mm2slo-overview", "Flow status", answers)
    texts = visible_texts(found)[1:]
    # Burn rates, alerts and groups have no data, so these columns are absent.
    assert texts[:5] == ["Flow", "State", "Lag", "Lag in records", "Remaining budget"]
    dash = "–"  # noqa: RUF001 - an en dash
    assert texts[5:] == [
        *("eu->us", "stopped", "1.5 min", "12.3 K", "overspent"),
        *("us->eu", "running", "250 ms", dash, "100.0%"),
        *("ap->us", dash, dash, dash, "20.0%"),
    ]
    styles = {text: style for style, text in styled(found)}
    assert styles["stopped"] == f"background:{BAD};color:#ffffff"
    assert styles["overspent"] == f"color:{BAD}"
    assert styles["20.0%"] == "color:#E69F00"
    # A dash is aligned like the values of its column.
    assert found.count(f'<td class="figure" title="{dash}">{dash}</td>') == 4
    assert styles["1.5 min"] == f"color:{BAD}"


def test_flow_column_links_to_flow_dashboard_with_odd_name() -> None:
    odd = {"flow": 'a "b"&c/d->e$'}
    prometheus = FakePrometheus({"mm2_flow_state": vector((odd, 0))})
    found = panel_html(draw_page(dashboards()["mm2slo-overview"], prometheus).html, "Flow status")
    [(href, title, text)] = re.findall(r'<a href="([^"]*)" title="([^"]*)">([^<]*)</a>', found)[-1:]
    assert (href, text) == ("mm2slo-flow.html", "a &quot;b&quot;&amp;c/d-&gt;e$")
    assert title.endswith("var-flow=a%20%22b%22%26c%2Fd-%3Ee%24")
    assert "var-datasource=default&amp;from=1699999500000&amp;to=1700000100000" in title


def test_bars_share_one_scale() -> None:
    answers = {
        "canary_late_total": vector((A, 1)),
        "canary_lost_total": vector((A, 4)),
        "canary_duplicates": vector((A, 0)),
    }
    found = html("mm2slo-flow", "Record faults", answers, flow=["us->eu"])
    names = ("lost", "late", "duplicated")
    expected = [(f"canaries {name}", count) for name, count in zip(names, "410", strict=True)]
    assert visible_texts(found)[1:] == [text for each in expected for text in each]
    assert re.findall(r"width:([\d.]+)%", found) == ["100.00", "25.00"]


def test_consecutive_equal_states_become_one_piece() -> None:
    found = list(
        pieces(Series("a", {}, ((0, 0.0), (15, 0.0), (30, 3.0), (75, 3.0), (90, 3.0))), 15.0, 100.0)
    )
    assert found == [
        Piece(0, 30.0, 0.0),
        Piece(30, 45.0, 3.0),
        # A missing scrape is a gap, and pieces end with the time range.
        Piece(75, 100.0, 3.0),
    ]


def test_timeline_shows_rows_and_states() -> None:
    history = matrix((A, {600: 0, 585: 0, 570: 3}), (B, dict.fromkeys(range(0, 601, 15), 0)))
    title = "Flow state history"
    found = html("mm2slo-overview", title, {"mm2_flow_state": history})
    bars = re.findall(r"<rect ([^>]*)><title>(\w+)</title>", found)
    assert [text for _, text in bars] == ["running", "stopped", "running"]
    wide = [float(re.search(r'width="([\d.]+)"', each)[1]) for each, _ in bars]  # type: ignore[index]
    # Of forty steps: two, one, and all.
    assert [each / wide[2] for each in wide] == pytest.approx([2 / 40, 1 / 40, 1], abs=0.001)
    assert [re.search(r'fill="(#\w+)"', each)[1] for each, _ in bars] == [GOOD, BAD, GOOD]  # type: ignore[index]
    # The legend lists the states.
    assert visible_texts(found)[-2:] == ["running", "stopped"]
    assert "us->eu" in visible_texts(found)


def test_requests_are_those_of_grafana() -> None:
    prometheus = FakePrometheus(values={"flow": ["a$1", "b"], "topic": ["t"]})
    draw_page(dashboards()["mm2slo-flow"], prometheus, scrape=15.0)
    paths = [path for path, _ in prometheus.requests]
    assert paths[:2] == ["label/flow/values", "label/topic/values"]
    # The first flow is selected, and all topics.
    assert prometheus.requests[1][1]["match[]"] == "mm2_topic_info{flow=~`a\\$1`}"
    requests = [given for path, given in prometheus.requests if path == "query_range"]
    rates = [each["query"] for each in requests if "rate(mm2_source_records_total" in each["query"]]
    assert rates
    assert all("topic=~`.*`" in each and "[1m]" in each for each in rates)
    assert {each["step"] for each in requests} == {"15.000"}
    assert {float(each["end"]) % 15 for each in requests} == {0.0}
    assert {float(given["time"]) for path, given in prometheus.requests if path == "query"} == {END}
    assert SPAN.end == END
