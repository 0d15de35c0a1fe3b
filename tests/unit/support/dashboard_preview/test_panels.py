"""Figures, bars, tables, timelines and heatmaps of the real boards, with made-up answers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dashboard_preview.data_frames import Series
from dashboard_preview.panels.heatmaps import Heat, counts
from dashboard_preview.panels.timelines import Piece, pieces
from dashed import dashboards
from preview_fixtures import END, SPAN, Told, matrix, page, panel, vector, words

A, B, C = {"flow": "us->eu"}, {"flow": "eu->us"}, {"flow": "ap->us"}
GOOD, BAD, NEUTRAL = "#009E73", "#D55E00", "#0072B2"


def html(uid: str, title: str, answers: dict[str, Any], **values: list[str]) -> str:
    return panel(page(dashboards()[uid], Told(answers, values)).html, title)


def styled(found: str) -> list[tuple[str, ...]]:
    """The style and the text of each cell and figure that has one."""
    return re.findall(r'<(?:td|div|b)[^>]*style="([^"]*)"[^>]*>(?:<a[^>]*>)?([^<]+)<', found)


def test_figures_are_coloured_by_name_and_bound() -> None:
    states = vector(({"state": "running"}, 3), ({"state": "stopped"}, 0), ({"state": "idle"}, 1))
    found = html("mm2slo-overview", "How many flows run?", {"mm2_flow_state": states})
    assert words(found)[1:] == ["running", "3", "stopped", "0", "idle", "1"]
    assert re.findall(r'<div style="color:(#\w+)"', found) == [GOOD, NEUTRAL, "#56B4E9"]


def test_one_figure_fills_its_panel_in_the_colour_of_its_word() -> None:
    found = html("mm2slo-flow", "In which state is it?", {"mm2_flow_state": vector((A, 3))})
    assert words(found)[1:] == ["us->eu", "stopped"]
    assert f"background:{BAD};color:#ffffff" in found
    assert "grid-template-columns:repeat(1,1fr)" in found


def test_many_figures_share_rows_in_which_their_names_are_whole() -> None:
    qualities = ("committed", "exactly_once", "foreign_writer", "not_started", "shared_target")
    answer = vector(*(({"quality": each}, 3) for each in qualities))
    found = html("mm2slo-flow", "How well are positions known?", {"mm2_replicated_part": answer})
    assert words(found)[1:] == [word for each in qualities for word in (each, "3")]


def test_a_table_has_its_columns_in_order_and_the_worst_row_first() -> None:
    answers = {
        "mm2_flow_state": vector((A, 0), (B, 3)),
        "budget_remaining": vector((A, 1), (B, -2.5), (C, 0.2)),
        "mm2_flow_lag_seconds": vector((A, 0.25), (B, 90)),
        "mm2_flow_lag_records": vector((B, 12_345)),
    }
    found = html("mm2slo-overview", "Which flows need attention first?", answers)
    said = words(found)[1:]
    # Nobody asked for burn rates, alerts and groups has an answer, so those columns are not there.
    assert said[:5] == ["Flow", "State", "Budget left", "Lag", "Records behind"]
    dash = "–"  # noqa: RUF001 - as people write it
    assert said[5:] == [
        *("eu->us", "stopped", "-250.0%", "1.5 min", "12.3 K"),
        *("us->eu", "running", "100.0%", "250 ms", dash),
        *("ap->us", dash, "20.0%", dash, dash),
    ]
    looks = {text: style for style, text in styled(found)}
    assert looks["stopped"] == f"background:{BAD};color:#ffffff"
    assert looks["-250.0%"] == f"color:{BAD}"
    assert looks["20.0%"] == "color:#E69F00"
    # A dash stands where the figures of its column do.
    assert found.count(f'<td class="figure" title="{dash}">{dash}</td>') == 4
    assert looks["1.5 min"] == f"color:{BAD}"


def test_a_tables_flow_leads_to_its_board_with_its_name() -> None:
    odd = {"flow": 'a "b"&c/d->e$'}
    told = Told({"mm2_flow_state": vector((odd, 0))})
    found = panel(
        page(dashboards()["mm2slo-overview"], told).html, "Which flows need attention first?"
    )
    [(href, title, text)] = re.findall(r'<a href="([^"]*)" title="([^"]*)">([^<]*)</a>', found)[-1:]
    assert (href, text) == ("mm2slo-flow.html", "a &quot;b&quot;&amp;c/d-&gt;e$")
    assert title.endswith("var-flow=a%20%22b%22%26c%2Fd-%3Ee%24")
    assert "var-datasource=default&amp;from=1699999500000&amp;to=1700000100000" in title


def test_bars_have_one_scale() -> None:
    answers = {
        "canary_late_total": vector((A, 1)),
        "canary_lost_total": vector((A, 4)),
        "canary_duplicates": vector((A, 0)),
    }
    found = html("mm2slo-flow", "What became of the canaries?", answers, flow=["us->eu"])
    assert words(found)[1:] == ["late", "1", "lost", "4", "twice", "0"]
    assert re.findall(r"width:([\d.]+)%", found) == ["25.00", "100.00"]


def test_states_that_follow_each_other_become_one_piece() -> None:
    found = list(
        pieces(Series("a", {}, ((0, 0.0), (15, 0.0), (30, 3.0), (75, 3.0), (90, 3.0))), 15.0, 100.0)
    )
    assert found == [
        Piece(0, 30.0, 0.0),
        Piece(30, 45.0, 3.0),
        # What was not scraped is a gap, and nothing goes on beyond the end.
        Piece(75, 100.0, 3.0),
    ]


def test_a_timeline_names_rows_and_states() -> None:
    course = matrix((A, {600: 0, 585: 0, 570: 3}), (B, dict.fromkeys(range(0, 601, 15), 0)))
    title = "Since when does each flow run, and when did it not?"
    found = html("mm2slo-overview", title, {"mm2_flow_state": course})
    bars = re.findall(r"<rect ([^>]*)><title>(\w+)</title>", found)
    assert [word for _, word in bars] == ["running", "stopped", "running"]
    wide = [float(re.search(r'width="([\d.]+)"', each)[1]) for each, _ in bars]  # type: ignore[index]
    # Of forty steps: two, one, and all.
    assert [each / wide[2] for each in wide] == pytest.approx([2 / 40, 1 / 40, 1], abs=0.001)
    assert [re.search(r'fill="(#\w+)"', each)[1] for each, _ in bars] == [GOOD, BAD, GOOD]  # type: ignore[index]
    # The legend's states, after the one that fits into its piece.
    assert words(found)[-2:] == ["running", "stopped"]
    assert "us->eu" in words(found)


def bucket(edge: str, *values: float) -> Series:
    return Series(edge, {"le": edge}, tuple((n * 15.0, each) for n, each in enumerate(values)))


def test_buckets_count_what_is_between_their_edges() -> None:
    # Out of order, as Prometheus may tell them.
    found = counts([bucket("+Inf", 9.0, 2.0), bucket("0.5", 4.0, 0.0), bucket("1", 9.0, 2.0)], 1e-9)
    assert found == (
        [0.5, 1.0, float("inf")],
        [Heat(0.0, 0, 4.0), Heat(0.0, 1, 5.0), Heat(15.0, 1, 2.0)],
    )


def test_a_heatmap_has_a_row_for_each_bucket_and_a_scale() -> None:
    course = matrix(
        ({"le": "0.5"}, {300: 4.0, 0: 0.0}),
        ({"le": "1"}, {300: 4.0, 0: 16.0}),
        ({"le": "+Inf"}, {300: 4.0, 0: 16.0}),
    )
    title = "How are canaries' times spread?"
    found = html("mm2slo-flow", title, {"canary_latency_seconds_bucket": course})
    cells = re.findall(r'<rect ([^>]*fill="(#\w+)" data-events="([\d.]+)")', found)
    assert [(colour, count) for _, colour, count in cells] == [("#08306b", "4"), ("#f7fbff", "16")]
    tops = [float(re.search(r' y="([\d.]+)"', each)[1]) for each, _, _ in cells]  # type: ignore[index]
    assert tops[0] > tops[1]
    said = words(found)
    assert said[-2:] == ["4", "16"]
    assert {"500 ms", "1 s", "+Inf"} <= set(said)


def test_what_is_asked_is_what_grafana_asks() -> None:
    told = Told(values={"flow": ["a$1", "b"], "topic": ["t"]})
    page(dashboards()["mm2slo-flow"], told, scrape=15.0)
    paths = [path for path, _ in told.asked]
    assert paths[:2] == ["label/flow/values", "label/topic/values"]
    # One flow is shown, the first one; a topic may be any of them.
    assert told.asked[1][1]["match[]"] == "mm2_topic_info{flow=~`a\\$1`}"
    asked = [given for path, given in told.asked if path == "query_range"]
    rates = [each["query"] for each in asked if "rate(mm2_source_records_total" in each["query"]]
    assert rates
    assert all("topic=~`.*`" in each and "[1m]" in each for each in rates)
    assert {each["step"] for each in asked} == {"15.000"}
    assert {float(each["end"]) % 15 for each in asked} == {0.0}
    assert {float(given["time"]) for path, given in told.asked if path == "query"} == {END}
    assert SPAN.end == END
