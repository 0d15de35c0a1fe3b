"""Names and errors from clusters and people are escaped everywhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sample_report import (
    AUDITS,
    FLOWS,
    GROUPS,
    LATENCIES,
    Document,
    cells,
    sample_details,
    sample_report,
)

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.report_entry import Confirmation, Entry, WindowKind
from mm2slo_core.reporting.slo_report import EntryDetail, Report
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.page_views import AuditView, FlowStatusView, GroupView, LatencyView
from mm2slo_report.rendering.report_exports import as_csv, as_markdown
from mm2slo_report.rendering.report_html import as_html, status_page_html

ATTACKS = (
    "javascript:alert(1)",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</title></style><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
)


@dataclass(frozen=True)
class Parts:
    """The data of a page; `entry` is the first one of the report."""

    report: Report
    entry: Entry
    flow: FlowStatusView = FLOWS[0]
    group: GroupView = GROUPS[1]
    audit: AuditView = AUDITS[0]
    latency: LatencyView = LATENCIES[0]
    problem: str = "exporter a did not respond"

    def with_objective(self, **named: Any) -> Parts:
        return self.with_entry(objective=replace(self.entry.objective, **named))

    def with_entry(self, **named: Any) -> Parts:
        return replace(self, entry=replace(self.entry, **named))

    def html(self) -> str:
        """The HTML of the page and of the report."""
        report = replace(self.report, entries=(self.entry, *self.report.entries[1:]))
        found = sample_details()[0]
        details = (EntryDetail(entry=self.entry, days=found.days, incidents=found.incidents),)
        return status_page_html(
            report,
            (self.flow,),
            (self.group,),
            (self.audit,),
            latencies=(self.latency,),
            details=details,
            problems=(self.problem,),
        ) + as_html(report, details)


def _flow(text: str) -> Flow:
    return Flow(text, f"eu{text}")


def _with_header(parts: Parts, **changes: Any) -> AuditView:
    run = parts.audit.run
    return replace(parts.audit, run=replace(run, header=replace(run.header, **changes)))


def _everywhere(parts: Parts, text: str) -> Parts:
    flow = _flow(text)
    moved = parts.with_objective(flow=flow)
    return replace(
        moved,
        flow=replace(parts.flow, flow=flow),
        group=replace(parts.group, flow=flow),
        latency=replace(parts.latency, flow=flow),
        audit=replace(
            _with_header(parts, flows=(flow,)),
            evidence=(replace(parts.audit.evidence[0], flow=flow),),
        ),
    )


def _period(parts: Parts, text: str) -> Parts:
    window = replace(parts.entry.window, kind=WindowKind.CALENDAR, name=text)
    moved = parts.with_entry(window=window)
    return replace(moved, report=replace(parts.report, window=window))


def _evidence(parts: Parts, text: str) -> Parts:
    found = replace(parts.audit.evidence[0], target_topic=text)
    return replace(parts, audit=replace(parts.audit, evidence=(found,)))


def _sentence(parts: Parts, text: str) -> Parts:
    return parts.with_entry(
        confirmation=Confirmation(audited_up_to=None, faults={text: 1}, sentence=text)
    )


PLACES: dict[str, Callable[[Parts, str], Parts]] = {
    "flow": _everywhere,
    "owner": lambda parts, text: parts.with_objective(owner=text),
    "tier": lambda parts, text: parts.with_objective(key=SliKey(Sli.LATENCY, text)),
    "warning": lambda parts, text: parts.with_entry(warnings=(text,)),
    "error": lambda parts, text: parts.with_entry(errors=(text,)),
    "pair": lambda parts, text: parts.with_entry(pair=text),
    "audit sentence": _sentence,
    "period": _period,
    "source": lambda parts, text: replace(parts, report=replace(parts.report, source=text)),
    "report warning": lambda parts, text: replace(
        parts, report=replace(parts.report, warnings=(text,))
    ),
    "state": lambda parts, text: replace(parts, flow=replace(parts.flow, state=text)),
    "group": lambda parts, text: replace(parts, group=replace(parts.group, group=text)),
    "reason": lambda parts, text: replace(parts, group=replace(parts.group, reasons=(text,))),
    "verdict": lambda parts, text: replace(
        parts, audit=replace(parts.audit, run=replace(parts.audit.run, verdict_line=text))
    ),
    "count": lambda parts, text: replace(parts, audit=replace(parts.audit, counts={text: 1})),
    "run": lambda parts, text: replace(parts, audit=_with_header(parts, id=text)),
    "not audited": lambda parts, text: replace(parts, audit=replace(parts.audit, problems=(text,))),
    "evidence": _evidence,
    "problem": lambda parts, text: replace(parts, problem=text),
    "origin": lambda parts, text: replace(parts, latency=replace(parts.latency, origin=text)),
}


def page_with(place: str, text: str) -> str:
    """The page with *text* in one field, and valid values in all others."""
    report = sample_report()
    return PLACES[place](Parts(report=report, entry=report.entries[0]), text).html()


CLEAN = Document(page_with("owner", "Streams team") + page_with("error", "none"))
KNOWN_ATTRIBUTES = {(each.tag, name) for each in CLEAN.elements for name in each.attributes}
KNOWN_TAGS = {each.tag for each in CLEAN.elements}


@pytest.mark.parametrize("place", list(PLACES))
def test_html_fields_are_escaped(place: str) -> None:
    text = " ".join(ATTACKS)
    found = Document(page_with(place, text))
    assert found.faults == []
    assert {each.tag for each in found.elements} <= KNOWN_TAGS
    assert {
        (each.tag, name) for each in found.elements for name in each.attributes
    } <= KNOWN_ATTRIBUTES
    assert text in found.text
    links = [each.attributes.get("href", "") for each in found.elements]
    assert not any(link.lower().startswith("javascript") for link in links)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_csv_cells_are_never_formulas(start: str) -> None:
    text = f'{start}HYPERLINK("http://example.test")'
    report = sample_report()
    entry = report.entries[0]
    changed = replace(
        entry,
        objective=replace(entry.objective, owner=text, flow=Flow(text, "eu")),
        errors=(text,),
        warnings=(text, text),
    )
    (row,) = csv.DictReader(io.StringIO(as_csv(replace(report, entries=(changed,))), newline=""))
    for column in ("flow", "source", "owner", "errors", "warnings"):
        assert row[column].startswith(f"'{start}"), column
    # Negative numbers are not text and stay unescaped.
    assert float(row["budget_remaining_ratio"]) == entry.budget.remaining
    assert row["budget_remaining_ratio"].startswith("-")


def test_csv_line_breaks_stay_in_their_cell() -> None:
    text = 'one, "two"\nthree;\r\nfour'
    report = sample_report()
    entry = replace(report.entries[0], warnings=(text,))
    rows = list(csv.DictReader(io.StringIO(as_csv(replace(report, entries=(entry,))), newline="")))
    assert len(rows) == 1
    assert rows[0]["warnings"] == text


@pytest.mark.parametrize(
    "attack",
    [
        "a | b | c",
        "`code` **bold** _thin_",
        "[x](javascript:alert(1))",
        "<script>alert(1)</script>",
        "two\n\n# lines | of",
        "back\\slash\\|",
        "&lt;b&gt;",
    ],
)
def test_markdown_text_is_escaped(attack: str) -> None:
    report = sample_report()
    entry = report.entries[0]
    flow = Flow(attack, "eu")
    changed = replace(
        entry, objective=replace(entry.objective, flow=flow, owner=attack), warnings=(attack,)
    )
    text = as_markdown(replace(report, entries=(changed,), warnings=(attack,)))
    header, row = cells(text)
    assert len(row) == len(header)
    assert row[1] == " ".join(flow.label.split())
    for sign in ("<", "[", "`", "**bold"):
        unescaped = text.replace(f"\\{sign}", "").replace("\\*\\*bold", "")
        assert sign not in unescaped, sign


def test_markdown_mentions_are_disabled() -> None:
    report = sample_report()
    entry = report.entries[0]
    called = replace(
        entry, objective=replace(entry.objective, owner="@here", flow=Flow("@channel", "eu"))
    )
    text = as_markdown(replace(report, entries=(called,), warnings=("ask @all",)))
    assert [each for each in ("@here", "@channel", "@all") if each in text] == []
    assert text.count("@\u200b") == 4  # the flow occurs in the table and in its section


def test_markdown_urls_are_not_links() -> None:
    report = sample_report()
    text = as_markdown(replace(report, warnings=("see https://evil.example and www.evil.example",)))
    assert "https://" not in text
    assert "www." not in text
