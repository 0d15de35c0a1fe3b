"""The report on a terminal: tables that fit 80 columns, and the verdict line."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from mm2slo_audit.report.audit_figures import P99, TopicFigures, compute_topic_figures
from mm2slo_audit.report.figure_format import (
    format_affinity,
    format_bracket,
    format_coverage,
    format_duration,
    format_evidence,
    format_latency,
    format_other_verdicts,
    format_window,
)
from mm2slo_core.audit.record_verdict import FAULTS, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType

    from mm2slo_audit.run.run_report import RunReport

_STYLES: Final = {0: "bold green", 1: "bold red", 2: "bold yellow"}
_COLUMNS: Final = (
    (Verdict.MATCHED,),
    (Verdict.LOST,),
    (Verdict.DUPLICATE, Verdict.REPLAY),
    (Verdict.PENDING,),
)
_SHOWN: Final = frozenset(verdict for group in _COLUMNS for verdict in group)
_UNAUDITED_SHOWN: Final = 10
_TOPICS_IN_DETAIL: Final = 3


def print_report(console: Console, report: RunReport) -> None:
    """Print the report; the verdict is the last line and is never wrapped."""
    console.print(render_screen(report))
    console.print(format_verdict_line(report), soft_wrap=True)


def render_screen(report: RunReport) -> RenderableType:
    """The report without the verdict line."""
    topics = [compute_topic_figures(unit, report.sample) for unit in report.units]
    parts: list[RenderableType] = [_title(report)]
    for label, group in groupby(topics, _flow_label):
        parts += _table(label, list(group))
    parts += _details(topics)
    parts += _examples(report)
    parts += _not_audited(report)
    return Group(*parts)


def format_verdict_line(report: RunReport) -> Text:
    """The conclusion, coloured by exit code."""
    return Text.assemble(("verdict: ", "bold"), (report.conclusion.line, _STYLES[report.exit_code]))


def _title(report: RunReport) -> Text:
    took = format_duration(report.finished_at - report.started_at)
    return Text.assemble(
        ("mm2slo audit", "bold"),
        f"  {format_window(report)}",
        (f"\n{format_coverage(report.sample)}", "dim"),
        (f"\nrun {report.run_id}, took {took}", "dim"),
    )


def _flow_label(topic: TopicFigures) -> str:
    return ", ".join(flow.label for flow, _ in topic.flows)


def _table(label: str, topics: list[TopicFigures]) -> Iterator[RenderableType]:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(label, overflow="fold", min_width=12)
    for heading in ("Matched", "Lost", "Dupl.", "Pending", "p99 latency", "Keys broken"):
        table.add_column(heading, justify="right", no_wrap=True)
    for topic in topics:
        figures = topic.figures
        table.add_row(
            figures.name,
            *(_count(sum(figures.counts.get(each, 0) for each in group)) for group in _COLUMNS),
            format_bracket(figures.end_to_end.percentiles[P99]),
            format_affinity(topic.unit.outcome.affinity),
        )
    yield Text()
    yield table
    for topic in topics:
        if also := format_other_verdicts(topic.figures.counts, _SHOWN):
            bad = any(topic.figures.counts.get(each) for each in FAULTS - _SHOWN)
            yield _point(f"{topic.figures.name}: {also}", "red" if bad else "dim")


def _count(count: int) -> str:
    return f"{count:,}"


def _details(topics: list[TopicFigures]) -> Iterator[RenderableType]:
    for topic in topics[:_TOPICS_IN_DETAIL]:
        lines = [
            format_latency(name, found)
            for name, found in (
                ("end to end", topic.figures.end_to_end),
                ("transfer", topic.figures.transfer),
            )
            if found.records
        ]
        lines += topic.quality
        if lines:
            yield Text(topic.figures.name, style="bold")
            yield from (_point(line) for line in lines)
    rest = len(topics) - _TOPICS_IN_DETAIL
    if rest > 0:
        yield Text(f"details of {rest:,} more topics: --report FILE.html", style="dim")


def _examples(report: RunReport) -> Iterator[RenderableType]:
    """One record per verdict, faults first."""
    first: dict[Verdict, str] = {}
    total = 0
    for unit in report.units:
        for each in unit.outcome.evidence:
            total += 1
            first.setdefault(each.verdict, format_evidence(unit.outcome.scope, each))
    if not first:
        return
    yield Text("evidence", style="bold")
    for verdict in sorted(first, key=lambda each: each not in FAULTS):
        yield _point(f"{verdict}: {first[verdict]}")
    if total > len(first):
        yield Text(f"  {total:,} records in all: --report FILE.html or .json", style="dim")


def _not_audited(report: RunReport) -> Iterator[RenderableType]:
    if not report.not_audited:
        return
    yield Text("not audited", style="bold")
    for each in report.not_audited[:_UNAUDITED_SHOWN]:
        yield _point(f"{each.target_topic}: {each.reason}: {each.detail}")
    rest = len(report.not_audited) - _UNAUDITED_SHOWN
    if rest > 0:
        yield Text(f"  {rest:,} more in --report FILE.html", style="dim")


def _point(text: str, style: str = "") -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(Text(), Text(text, style=style))
    return grid
