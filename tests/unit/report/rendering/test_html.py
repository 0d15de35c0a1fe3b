"""The pages are sound, safe, complete in themselves, and readable without sight or a mouse."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from rendered import (
    AUDITS,
    FLOWS,
    GROUPS,
    LATENCIES,
    sample_details,
    sample_report,
)
from rendered.reading import Document

from mm2slo_core.reporting.report import Report
from mm2slo_core.topology import Flow
from mm2slo_report.rendering import (
    CONTENT_SECURITY_POLICY,
    FlowView,
    References,
    as_html,
    page,
)

REPORT = sample_report()
DETAILS = sample_details()
PAGE = page(REPORT, FLOWS, GROUPS, AUDITS, latencies=LATENCIES, details=DETAILS)
PAPER = as_html(REPORT, DETAILS)
EMPTY_REPORT = Report(as_of=REPORT.as_of, source="recorder", zone="UTC", window=None, entries=())
EMPTY = page(EMPTY_REPORT)
ALL = pytest.mark.parametrize("html", [PAGE, PAPER, EMPTY], ids=["page", "report", "empty"])


@ALL
def test_elements_are_closed_and_ids_are_unique(html: str) -> None:
    found = Document(html)
    assert found.faults == []
    ids = [each.attributes["id"] for each in found.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    named = {each.attributes.get("href", "") for each in found.elements}
    assert {name[1:] for name in named if name.startswith("#")} <= set(ids)


@ALL
def test_nothing_is_loaded_from_elsewhere_and_nothing_runs(html: str) -> None:
    found = Document(html)
    assert not {each.tag for each in found.elements} & {"script", "iframe", "object", "img", "base"}
    for each in found.elements:
        assert not any(name.startswith("on") or name == "style" for name in each.attributes)
        assert "src" not in each.attributes
        assert not each.attributes.get("href", "").startswith(("http", "//", "javascript"))
    assert "url(" not in html
    assert "@import" not in html


@ALL
def test_the_policy_allows_the_style_sheet_and_nothing_else(html: str) -> None:
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY


@ALL
def test_tables_are_named_and_their_heads_say_what_they_head(html: str) -> None:
    found = Document(html).elements
    tags = [each.tag for each in found]
    assert tags.count("table") == tags.count("caption")
    heads = [each for each in found if each.tag == "th"]
    assert all(each.attributes.get("scope") in {"col", "row"} for each in heads)
    assert tags.count("h1") == 1
    assert [each.attributes["lang"] for each in found if each.tag == "html"] == ["en"]


def test_every_picture_has_a_text() -> None:
    pictures = [each for each in Document(PAGE).elements if each.tag == "svg"]
    assert len(pictures) > len(DETAILS)
    for each in pictures:
        assert {"aria-hidden", "aria-labelledby"} & set(each.attributes), each


def test_a_status_is_told_by_a_word_and_a_shape() -> None:
    for status in ("ok", "warning", "breached", "no_data", "idle"):
        shape = re.escape(f'<use href="#shape-{status}"/></svg>')
        assert re.search(shape + r"\s*" + status.replace("_", " "), PAPER), status


def test_the_page_says_what_it_is_about() -> None:
    text = Document(PAGE).text
    assert "1 of 8 objectives is breached" in text
    assert "Each objective over its own window, as of 2026-07-14 10:30 UTC" in text
    assert "Figures from recorder" in text
    assert "overspent by about 4.3 h" in text
    assert "Prometheus keeps 15 d" in text
    assert "stopped" in text
    assert "1 of 3 consumer groups would resume correctly" in text
    assert "checkpoint stale, flow not alive" in text
    assert "90,000 to 91,400" in text
    assert "8811204" in text
    assert "us.audit-log (authorization: Describe was refused)" in text
    assert "p99 1.9 s to 2.6 s" in text
    assert "p99.9 at most 31 s" in text
    assert "audited up to 2026-07-14 00:30 UTC: 2 lost of 1,204,883" in text


def test_an_audit_that_judged_nothing_found_no_faults_nor_none() -> None:
    html = page(REPORT, audits=[replace(AUDITS[0], state="finished", counts={}, faults=0)])
    section = Document(html[html.index('id="audits"') :]).text
    assert "nothing judged" in section
    assert "no faults" not in section


def test_an_empty_page_says_what_to_do() -> None:
    text = Document(EMPTY).text
    for said in (
        "There are no objectives to report on",
        "No flow has been seen yet",
        "No audit has run yet",
        "No consumer group is watched",
    ):
        assert said in text


def test_a_file_to_pass_on_has_no_links_to_the_service() -> None:
    html = as_html(REPORT, DETAILS, references=References(service=None))
    links = {each.attributes["href"] for each in Document(html).elements if each.tag == "a"}
    assert all(each.startswith("#") for each in links)


def test_links_lead_to_where_people_reach_the_service() -> None:
    html = page(REPORT, references=References(service="https://slo.example.test/mm2"))
    links = {each.attributes["href"] for each in Document(html).elements if each.tag == "a"}
    assert f"https://slo.example.test/mm2/slo/{REPORT.entries[0].id}" in links
    # The same figures later, too.
    at = "at=2026-07-14T10%3A30%3A00Z"
    assert f"https://slo.example.test/mm2/slo/report?format=csv&{at}" in links
    over = replace(REPORT, window=replace(REPORT.entries[0].window, name="28d"))
    html = page(over, references=References(service="https://slo.example.test/mm2"))
    links = {each.attributes["href"] for each in Document(html).elements if each.tag == "a"}
    assert f"https://slo.example.test/mm2/slo/report?format=md&{at}&period=28d" in links


def test_times_are_those_of_the_reports_zone() -> None:
    html = as_html(replace(REPORT, zone="Europe/Berlin"))
    assert '<time datetime="2026-07-14T10:30:00Z">2026-07-14 12:30 CEST</time>' in html


def test_many_flows_are_drawn_in_part_and_listed_in_full() -> None:
    flows = [FlowView(flow=Flow(f"c{number}", "hub"), state="running") for number in range(40)]
    html = page(EMPTY_REPORT, flows)
    found = Document(html)
    assert found.faults == []
    assert "27 more flows, none of them worse, are not drawn" in found.text
    assert "All 40 flows, as a table" in found.text
    rows = [each for each in found.elements if each.attributes.get("id", "").startswith("flow-c")]
    assert len(rows) == 40


def test_groups_that_are_not_ready_come_first() -> None:
    html = page(REPORT, readiness=GROUPS)
    section = html[html.index('id="failover"') :]
    places = [section.index(each) for each in ("search-indexer", "ledger", "billing")]
    assert places == sorted(places)


def test_an_incident_is_told_with_its_begin_and_its_end() -> None:
    for html in (PAGE, PAPER):
        assert (
            '<time datetime="2026-06-22T20:06:00Z">2026-06-22 20:06 UTC</time>'
            '<small>to <time datetime="2026-06-22T20:41:00Z">20:41</time></small>'
        ) in html
        # Bad up to the last minute that is known.
        assert (
            '<time datetime="2026-07-14T10:18:00Z">2026-07-14 10:18 UTC</time>'
            "<small>goes on</small>"
        ) in html


def test_what_all_objectives_share_is_told_once() -> None:
    young, own = "young: known for 4m of 28d", "of one alone"
    entries = [replace(each, warnings=(young,)) for each in REPORT.entries]
    entries[2] = replace(entries[2], warnings=(own, young))
    for html in (
        page(replace(REPORT, entries=tuple(entries))),
        as_html(replace(REPORT, entries=tuple(entries))),
    ):
        assert f'<p class="notice" role="note">All objectives: {young}</p>' in html
        assert html.count(young) == 1
        assert html.count(f"<li>{own}</li>") == 1
    other = replace(entries[3], warnings=())
    html = page(replace(REPORT, entries=(*entries[:3], other, *entries[4:])))
    assert html.count(f"<li>{young}</li>") == len(entries) - 1
    assert html.count("<ul") - html.count('<ul class="notes">') == 1  # the sections' own


def test_a_single_objective_tells_of_itself() -> None:
    (first, *_) = REPORT.entries
    html = page(replace(REPORT, entries=(replace(first, warnings=("young",)),)))
    assert "<li>young</li>" in html
    assert "All objectives" not in html


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (("running", "idle", None), None),
        (("stopped",), "The one flow is stopped. 1 of 8 objectives is breached"),
        (("stopped", "unknown"), "1 of 2 flows is stopped. 1 of 8 objectives is breached"),
        (("stopped", "stopped"), "2 of 2 flows are stopped. 1 of 8 objectives is breached"),
    ],
)
def test_a_flow_that_is_stopped_now_stands_in_the_headline(
    states: tuple[str | None, ...], words: str | None
) -> None:
    flows = [FlowView(flow=Flow("us", f"c{n}"), state=each) for n, each in enumerate(states)]
    html = page(REPORT, flows)
    found = re.search(r"<h1>.*?</svg>(.*?)</h1>", html, re.DOTALL)
    assert found is not None
    assert found[1] == (words or "1 of 8 objectives is breached")
    assert f"<title>{found[1]} – mm2slo</title>" in html  # noqa: RUF001 - a dash between words


def test_nothing_breached_is_no_good_headline_while_flows_are_stopped() -> None:
    html = page(EMPTY_REPORT, [FlowView(flow=Flow("us", "eu"), state="stopped")])
    assert '<h1><svg class="breached"' in html
