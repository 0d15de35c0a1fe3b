"""The report on a terminal: tables that fit 80 columns, and the verdict line."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mm2slo_audit.audit_ports import RunReport
from mm2slo_audit.report.run_figures import (
    FigureColumn,
    TopicFigures,
    columns_width,
    compute_topic_figures,
    format_coverage,
    format_duration,
    format_evidence,
    format_latency,
    format_window,
    shown_columns,
)
from mm2slo_core.audit.audit_conclusion import Result
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.audit.unit_outcome import FAULTS, Verdict

_STYLES: Final = {
    Result.CLEAN: "bold green",
    Result.DUPLICATED: "bold yellow",
    Result.FAULTS: "bold red",
    Result.NOTHING_AUDITED: "bold yellow",
}
_NAME_WIDTH: Final = 12
_UNAUDITED_SHOWN: Final = 10
_TOPICS_IN_DETAIL: Final = 3


_REPORT: Final = "mm2slo audit --report FILE.html"


def print_report(console: Console, report: RunReport) -> None:
    """Print the report; the verdict is the last line and is never wrapped."""
    console.print(render_screen(report, console.width))
    console.print(format_verdict_line(report), soft_wrap=True)


def render_screen(report: RunReport, width: int) -> RenderableType:
    """The report without the verdict line, with tables of at most *width* columns."""
    topics = [compute_topic_figures(unit, report.sample) for unit in report.units]
    parts: list[RenderableType] = [_title(report)]
    for label, group in groupby(topics, _flow_label):
        parts += _table(label, list(group), width)
    parts += _details(topics)
    parts += _examples(report)
    parts += _not_audited(report)
    return Group(*parts)


def format_verdict_line(report: RunReport) -> Text:
    """The conclusion, coloured by exit code."""
    style = _STYLES[report.conclusion.result]
    return Text.assemble(("verdict: ", "bold"), (report.conclusion.line, style))


def _title(report: RunReport) -> Text:
    took = format_duration(report.finished_at - report.header.started_at)
    return Text.assemble(
        ("mm2slo audit", "bold"),
        f"  {format_window(report)}",
        (f"\n{format_coverage(report)}", "dim"),
        (f"\nrun {report.header.id}, took {took}", "dim"),
        *((f"\n{note}", "yellow") for note in report.notes),
    )


def _flow_label(topic: TopicFigures) -> str:
    return ", ".join(flow.label for flow, _ in topic.flows)


def _table(label: str, topics: list[TopicFigures], width: int) -> Iterator[RenderableType]:
    """Names are not split, so that they can be copied: a long one is below the table."""
    rows = [each.figures for each in topics]
    widest_name = width - columns_width(shown_columns(rows, 0), rows)
    in_table = [each for each in topics if len(each.figures.name) <= widest_name]
    name_width = max(_NAME_WIDTH, *(len(each.figures.name) for each in in_table), 0)
    shown = shown_columns(rows, width - name_width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(label, overflow="fold", min_width=name_width)
    for column in shown:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for topic in in_table:
        cells = (
            Text(each.cell(topic.figures), "red" if _is_fault(each, topic) else "")
            for each in shown
        )
        table.add_row(topic.figures.name, *cells)
    yield Text()
    yield table if in_table else Text(label)
    for topic in topics:
        in_row = shown if topic in in_table else ()
        rest = [each for each in shown_columns([topic.figures]) if each not in in_row]
        if rest:
            also = ", ".join(f"{each.cell(topic.figures)} {each.heading.lower()}" for each in rest)
            bad = any(_is_fault(each, topic) for each in rest)
            yield _point(f"{topic.figures.name}: {also}", "red" if bad else "")


def _is_fault(column: FigureColumn, topic: TopicFigures) -> bool:
    return column.is_fault and column.count(topic.figures) > 0


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
        yield Text(f"details of {plural(rest, 'more topic')}: {_REPORT}", style="dim")


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
        yield Text(f"  {plural(total, 'record')} in all: {_REPORT} or .json", style="dim")


def _not_audited(report: RunReport) -> Iterator[RenderableType]:
    if not report.not_audited:
        return
    yield Text("not audited", style="bold")
    for each in report.not_audited[:_UNAUDITED_SHOWN]:
        yield _point(f"{each.target_topic}: {each.reason}: {each.detail}")
    rest = len(report.not_audited) - _UNAUDITED_SHOWN
    if rest > 0:
        yield Text(f"  {rest:,} more: {_REPORT}", style="dim")


def _point(text: str, style: str = "") -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(Text(), Text(text, style=style))
    return grid
