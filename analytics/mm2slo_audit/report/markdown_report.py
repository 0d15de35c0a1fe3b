"""The report as Markdown, for tickets and chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_audit.report.audit_figures import compute_flow_figures, compute_topic_figures
from mm2slo_audit.report.figure_columns import shown_columns
from mm2slo_audit.report.figure_format import (
    format_coverage,
    format_evidence,
    format_latency,
    format_throughput,
    format_window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mm2slo_audit.report.audit_figures import Figures, TopicFigures
    from mm2slo_audit.run.run_report import RunReport

_EVIDENCE = 20


def render_markdown(report: RunReport) -> str:
    """The complete report."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: RunReport) -> Iterator[str]:
    topics = [compute_topic_figures(unit, report.sample) for unit in report.units]
    yield f"# Replication audit: {report.conclusion.result.upper()}"
    yield ""
    yield f"**{_escape(report.conclusion.line)}**"
    yield ""
    yield f"- window: {format_window(report)}"
    yield f"- {format_coverage(report)}"
    yield f"- run: {report.run_id}"
    yield from (f"- {_escape(note)}" for note in report.notes)
    if topics:
        yield from _figures("Flow", compute_flow_figures(report))
        yield from _figures("Topic", [each.figures for each in topics])
    for topic in topics:
        yield from _detail(topic)
    if report.not_audited:
        yield from _section(
            "Not audited",
            ("Topic", "Reason", "Detail"),
            ([each.target_topic, each.reason, each.detail] for each in report.not_audited),
        )


def _section(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield f"| {' | '.join(headings)} |"
    yield f"|{'|'.join('---' for _ in headings)}|"
    for row in rows:
        yield f"| {' | '.join(map(_escape, row))} |"


def _figures(first: str, rows: Sequence[Figures]) -> Iterator[str]:
    shown = shown_columns(rows)
    return _section(
        f"{first}s",
        (first, *(each.heading for each in shown)),
        ([figures.name, *(each.cell(figures) for each in shown)] for figures in rows),
    )


def _detail(topic: TopicFigures) -> Iterator[str]:
    yield from ("", f"### {_escape(topic.figures.name)}", "")
    yield f"- {format_latency('end to end', topic.figures.end_to_end)}"
    yield f"- {format_latency('transfer', topic.figures.transfer)}"
    yield f"- throughput: {format_throughput(topic.figures.throughput)}"
    yield from (f"- {_escape(line)}" for line in topic.quality)
    outcome = topic.unit.outcome
    for each in outcome.evidence[:_EVIDENCE]:
        yield f"- {each.verdict}: {_escape(format_evidence(outcome.scope, each))}"
    rest = len(outcome.evidence) - _EVIDENCE
    if rest > 0:
        yield f"- {rest:,} more in the results store"


def _escape(text: str) -> str:
    """Escape Markdown and HTML: names may contain their special characters."""
    for sign in "\\`*_[]|":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
