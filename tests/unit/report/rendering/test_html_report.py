"""The pages are valid, safe, self-contained and accessible."""

import base64
import hashlib
import re
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from sample_report import AUDITS, FLOWS, GROUPS, LATENCIES, Document, sample_details, sample_report

from mm2slo_core.reporting.slo_report import Report
from mm2slo_core.reporting.step_counts import MINUTE_MS
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.page_views import FlowStatusView
from mm2slo_report.rendering.report_html import CONTENT_SECURITY_POLICY, as_html, status_page_html
from mm2slo_report.service_settings import References

REPORT = sample_report()
DETAILS = sample_details()
PAGE = status_page_html(REPORT, FLOWS, GROUPS, AUDITS, latencies=LATENCIES, details=DETAILS)
REPORT_HTML = as_html(REPORT, DETAILS)
EMPTY_REPORT = Report(as_of=REPORT.as_of, source="recorder", zone="UTC", window=None, entries=())
EMPTY = status_page_html(EMPTY_REPORT)
ALL = pytest.mark.parametrize("html", [PAGE, REPORT_HTML, EMPTY], ids=["page", "report", "empty"])


@ALL
def test_html_is_well_formed_with_unique_ids(html: str) -> None:
    found = Document(html)
    assert found.faults == []
    ids = [each.attributes["id"] for each in found.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    named = {each.attributes.get("href", "") for each in found.elements}
    assert {name[1:] for name in named if name.startswith("#")} <= set(ids)


@ALL
def test_pages_load_nothing_and_run_no_scripts(html: str) -> None:
    found = Document(html)
    assert not {each.tag for each in found.elements} & {"script", "iframe", "object", "img", "base"}
    for each in found.elements:
        assert not any(name.startswith("on") or name == "style" for name in each.attributes)
        assert "src" not in each.attributes
        assert not each.attributes.get("href", "").startswith(("http", "//", "javascript"))
    assert "url(" not in html
    assert "@import" not in html


@ALL
def test_security_policy_allows_only_the_style_sheet(html: str) -> None:
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY


@ALL
def test_tables_have_captions_and_header_scopes(html: str) -> None:
    found = Document(html).elements
    tags = [each.tag for each in found]
    assert tags.count("table") == tags.count("caption")
    heads = [each for each in found if each.tag == "th"]
    assert all(each.attributes.get("scope") in {"col", "row"} for each in heads)
    assert tags.count("h1") == 1
    assert [each.attributes["lang"] for each in found if each.tag == "html"] == ["en"]


def test_svg_images_have_text_alternatives() -> None:
    pictures = [each for each in Document(PAGE).elements if each.tag == "svg"]
    assert len(pictures) > len(DETAILS)
    for each in pictures:
        assert {"aria-hidden", "aria-labelledby"} & set(each.attributes), each


def test_status_badges_have_text_and_shape() -> None:
    for status in ("met", "at_risk", "breached", "no_data", "idle"):
        shape = re.escape(f'<use href="#shape-{status}"/></svg>')
        assert re.search(shape + r"\s*" + status.replace("_", " "), REPORT_HTML), status


def test_status_page_contains_report_values() -> None:
    text = Document(PAGE).text
    assert "1 of 8 objectives is breached" in text
    assert "Each objective over its own window, as of 2026-07-14 10:30 UTC" in text
    assert "Figures from recorder" in text
    assert "overspent by about 4.3 h" in text
    assert "Prometheus keeps 15 d" in text
    assert "stopped" in text
    assert "1 of 3 consumer groups would resume correctly" in text
    assert "checkpoint stale, would skip records (12 to 40 skipped)" in text
    assert "90,000 to 91,400" in text
    assert "8811204" in text
    assert "us.audit-log (authorization: Describe was refused)" in text
    assert "p99 1.9 s to 2.6 s" in text
    assert "p99.9 at most 31 s" in text
    assert "audited up to 2026-07-14 00:30 UTC: 2 lost of 1,204,883" in text


@pytest.mark.parametrize("timestamp", [-1, 253_402_300_800_000, (1 << 63) - 1])
def test_evidence_without_a_date_has_no_record_time(timestamp: int) -> None:
    found = AUDITS[0].evidence[0]
    found = replace(found, evidence=replace(found.evidence, timestamp=timestamp))
    html = status_page_html(REPORT, audits=[replace(AUDITS[0], evidence=(found,))])
    assert '<td role="cell" data-label="Record time"><span>n/a</span></td>' in html
    assert "1969-12-31" not in html


def test_audit_without_judged_records_shows_no_fault_verdict() -> None:
    html = status_page_html(REPORT, audits=[replace(AUDITS[0], counts={}, faults=0)])
    section = Document(html[html.index('id="audits"') :]).text
    assert "no records judged" in section
    assert "no faults" not in section


def test_empty_status_page_shows_instructions() -> None:
    text = Document(EMPTY).text
    for expected in (
        "No objectives are configured",
        "No flows yet",
        "No audit has run yet",
        "No consumer groups",
    ):
        assert expected in text


def test_report_without_service_url_has_no_service_links() -> None:
    html = as_html(REPORT, DETAILS, references=References(service=None))
    links = {each.attributes["href"] for each in Document(html).elements if each.tag == "a"}
    assert all(each.startswith("#") for each in links)


def test_incidents_link_to_logs_of_their_flow_and_time() -> None:
    html = as_html(REPORT, DETAILS, references=References(splunk="https://splunk.example"))
    links = [
        each.attributes["href"]
        for each in Document(html).elements
        if each.attributes.get("href", "").startswith("https://splunk.example/")
    ]
    [first, *_] = [each for each in DETAILS if each.incidents]
    incident = first.incidents[0]
    query = {
        "q": [
            f'search `repl_index` flow="{first.entry.objective.flow.label}" '
            "NOT event_action=offsets_committing | `repl_dedup`"
        ],
        "earliest": [str(incident.start // 1000)],
        "latest": [str(incident.end // 1000)],
    }
    assert query in [parse_qs(urlsplit(each).query, strict_parsing=True) for each in links]
    shown = sum(min(len(each.incidents), 5) for each in DETAILS)
    costliest = min(sum(len(each.incidents) for each in DETAILS), 10)
    assert len(links) == shown + costliest
    assert "splunk" not in REPORT_HTML.lower()


def test_links_use_external_service_url() -> None:
    html = status_page_html(REPORT, references=References(service="https://slo.example.test/mm2"))
    links = {each.attributes["href"] for each in Document(html).elements if each.tag == "a"}
    assert f"https://slo.example.test/mm2/slo/{REPORT.entries[0].id}" in links
    # Format links keep the instant.
    at = "at=2026-07-14T10%3A30%3A00Z"
    assert f"https://slo.example.test/mm2/slo/report?format=csv&{at}" in links
    over = replace(REPORT, window=replace(REPORT.entries[0].window, name="28d"))
    html = status_page_html(over, references=References(service="https://slo.example.test/mm2"))
    links = {each.attributes["href"] for each in Document(html).elements if each.tag == "a"}
    assert f"https://slo.example.test/mm2/slo/report?format=md&{at}&period=28d" in links


def test_times_use_time_zone_of_report() -> None:
    html = as_html(replace(REPORT, zone="Europe/Berlin"))
    assert '<time datetime="2026-07-14T10:30:00Z">2026-07-14 12:30 CEST</time>' in html


def test_many_flows_are_drawn_partly_and_listed_fully() -> None:
    flows = [
        FlowStatusView(flow=Flow(f"c{number}", "hub"), state="running") for number in range(40)
    ]
    html = status_page_html(EMPTY_REPORT, flows)
    found = Document(html)
    assert found.faults == []
    assert "27 more flows with the same or a better status are not drawn" in found.text
    assert "All 40 flows, as a table" in found.text
    rows = [each for each in found.elements if each.attributes.get("id", "").startswith("flow-c")]
    assert len(rows) == 40


def test_groups_that_are_not_ready_come_first() -> None:
    html = status_page_html(REPORT, readiness=GROUPS)
    section = html[html.index('id="failover"') :]
    places = [section.index(each) for each in ("search-indexer", "ledger", "billing")]
    assert places == sorted(places)


def test_groups_show_unreplicated_records_and_their_age() -> None:
    html = status_page_html(REPORT, readiness=GROUPS)
    assert 'data-label="Unreplicated"><span>1,183</span><small>20 s</small>' in html
    assert 'data-label="Lag on source"><span>307</span><small>42 s</small>' in html
    assert 'data-label="Lag on target"><span>1,490</span></td>' in html


def test_incident_shows_start_and_end() -> None:
    for html in (PAGE, REPORT_HTML):
        assert (
            '<time datetime="2026-06-22T20:06:00Z">2026-06-22 20:06 UTC</time>'
            '<small>to <time datetime="2026-06-22T20:41:00Z">20:41</time></small>'
        ) in html
        # Bad up to the last known minute.
        assert (
            '<time datetime="2026-07-14T10:18:00Z">2026-07-14 10:18 UTC</time>'
            "<small>ongoing</small>"
        ) in html


@pytest.mark.parametrize(("minutes", "shown"), [(0, True), (1, True), (4, True), (5, False)])
def test_incident_is_ongoing_until_the_next_step_ends(minutes: int, shown: bool) -> None:
    later = replace(REPORT, as_of=REPORT.as_of + minutes * MINUTE_MS)
    assert ("<small>ongoing</small>" in as_html(later, DETAILS)) is shown


def test_warning_of_all_objectives_is_shown_once() -> None:
    common, own = "only 4 minutes of 28 days of data", "of one objective"
    entries = [replace(each, warnings=(common,)) for each in REPORT.entries]
    entries[2] = replace(entries[2], warnings=(own, common))
    for html in (
        status_page_html(replace(REPORT, entries=tuple(entries))),
        as_html(replace(REPORT, entries=tuple(entries))),
    ):
        assert f'<p class="notice" role="note">All objectives: {common}</p>' in html
        assert html.count(common) == 1
        assert html.count(f"<li>{own}</li>") == 1
    other = replace(entries[3], warnings=())
    html = status_page_html(replace(REPORT, entries=(*entries[:3], other, *entries[4:])))
    assert html.count(f"<li>{common}</li>") == len(entries) - 1
    assert html.count("<ul") - html.count('<ul class="notes">') == 1  # the navigation list


def test_warning_of_single_objective_stays_in_its_row() -> None:
    (first, *_) = REPORT.entries
    html = status_page_html(
        replace(REPORT, entries=(replace(first, warnings=("only 3 of 28 days of data",)),))
    )
    assert "<li>only 3 of 28 days of data</li>" in html
    assert "All objectives" not in html


@pytest.mark.parametrize(
    ("states", "headline"),
    [
        (("running", "idle", None), None),
        (("stopped",), "The flow is stopped. 1 of 8 objectives is breached"),
        (("stopped", "unknown"), "1 of 2 flows is stopped. 1 of 8 objectives is breached"),
        (("stopped", "stopped"), "2 of 2 flows are stopped. 1 of 8 objectives is breached"),
    ],
)
def test_headline_mentions_stopped_flows(
    states: tuple[str | None, ...], headline: str | None
) -> None:
    flows = [FlowStatusView(flow=Flow("us", f"c{n}"), state=each) for n, each in enumerate(states)]
    html = status_page_html(REPORT, flows)
    found = re.search(r"<h1>.*?</svg>(.*?)</h1>", html, re.DOTALL)
    assert found is not None
    assert found[1] == (headline or "1 of 8 objectives is breached")
    assert f"<title>{found[1]} – mm2slo</title>" in html  # noqa: RUF001 - an en dash


def test_headline_of_stopped_flow_has_breached_icon() -> None:
    html = status_page_html(EMPTY_REPORT, [FlowStatusView(flow=Flow("us", "eu"), state="stopped")])
    assert '<h1><svg class="breached"' in html
