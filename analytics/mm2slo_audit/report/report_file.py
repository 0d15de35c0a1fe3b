"""Writes a report to a file as HTML, Markdown or JSON; the suffix selects the format.

Markdown is for tickets and chats. JSON is for programs and documented in docs/audit.md: within a
version fields are added, never renamed or removed.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from mm2slo_audit.audit_ports import RunReport
from mm2slo_audit.report.audit_html import render_html
from mm2slo_audit.report.run_figures import (
    Figures,
    Latency,
    TopicFigures,
    compute_flow_figures,
    compute_topic_figures,
    format_coverage,
    format_evidence,
    format_latency,
    format_throughput,
    format_window,
    shown_columns,
)
from mm2slo_core.audit.audit_conclusion import Result
from mm2slo_core.audit.audit_scope import Comparison, NotAudited
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    LatencyCells,
    Verdict,
    percentile_name,
)
from mm2slo_core.user_errors import UserError
from mm2slo_store.audit_document import (
    AuditDetail,
    AuditedTopic,
    AuditModel,
    EvidenceRecord,
    Hash,
    Instant,
    PercentileBounds,
    bracket_seconds,
    count_fields,
    latency_seconds,
)
from mm2slo_store.audit_rows import EvidencePlace, Run, RunState, StoredEvidence


def render_markdown(report: RunReport) -> str:
    """The complete report."""
    return "\n".join(_markdown_lines(report)) + "\n"


def render_json(report: RunReport) -> str:
    """The report as indented JSON."""
    return json.dumps(build_json_document(report), indent=2, ensure_ascii=False) + "\n"


_FORMATS: Final[Mapping[str, Callable[[RunReport], str]]] = {
    ".html": render_html,
    ".md": render_markdown,
    ".json": render_json,
}


def check_report_path(path: Path, suffixes: Collection[str] = _FORMATS) -> Path:
    """Check before the run that a report can be written to *path*. Raises UserError if not."""
    if path.suffix.lower() not in suffixes:
        *first, last = suffixes
        raise UserError(
            f"--report {str(path)!r} has an unknown suffix; expected {', '.join(first)} or {last}"
        )
    if path.is_dir():
        raise UserError(f"--report {str(path)!r} is a folder; expected a file")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"--report {str(path)!r}: folder {folder} does not exist; create it first")
    # The file is replaced, so that its folder decides.
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"--report {str(path)!r} cannot be written: permission denied")
    return path


def write_report(path: Path, report: RunReport) -> None:
    """Write *report* in the format that the suffix selects; as `write_formatted`."""
    write_formatted(path, report, _FORMATS)


_Report = TypeVar("_Report")


def write_formatted(
    path: Path, report: _Report, formats: Mapping[str, Callable[[_Report], str]]
) -> None:
    """Write *report* in the one of *formats* that the suffix selects.

    Atomically: readers see the old text or the new one. Raises UserError if that fails.
    """
    part = path.with_name(f".{path.name}.part")
    text = formats[path.suffix.lower()](report)
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"--report {str(path)!r} cannot be written: {error.strerror}") from None


_MAX_EVIDENCE = 20


def _markdown_lines(report: RunReport) -> Iterator[str]:
    topics = [compute_topic_figures(unit, report.sample) for unit in report.units]
    yield f"# Replication audit: {report.conclusion.result.upper()}"
    yield ""
    yield f"**{_escape_markdown(report.conclusion.line)}**"
    yield ""
    yield f"- window: {format_window(report)}"
    yield f"- {format_coverage(report)}"
    yield f"- run: {report.header.id}"
    yield from (f"- {_escape_markdown(note)}" for note in report.notes)
    if topics:
        yield from _markdown_figures("Flow", compute_flow_figures(report))
        yield from _markdown_figures("Topic", [each.figures for each in topics])
    for topic in topics:
        yield from _markdown_topic(topic)
    if report.not_audited:
        yield from _markdown_section(
            "Not audited",
            ("Topic", "Reason", "Detail"),
            ([each.target_topic, each.reason, each.detail] for each in report.not_audited),
        )


def _markdown_section(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield f"| {' | '.join(headings)} |"
    yield f"|{'|'.join('---' for _ in headings)}|"
    for row in rows:
        yield f"| {' | '.join(map(_escape_markdown, row))} |"


def _markdown_figures(first: str, rows: Sequence[Figures]) -> Iterator[str]:
    shown = shown_columns(rows)
    return _markdown_section(
        f"{first}s",
        (first, *(each.heading for each in shown)),
        ([figures.name, *(each.cell(figures) for each in shown)] for figures in rows),
    )


def _markdown_topic(topic: TopicFigures) -> Iterator[str]:
    yield from ("", f"### {_escape_markdown(topic.figures.name)}", "")
    yield f"- {format_latency('end to end', topic.figures.end_to_end)}"
    yield f"- {format_latency('transfer', topic.figures.transfer)}"
    yield f"- throughput: {format_throughput(topic.figures.throughput)}"
    yield from (f"- {_escape_markdown(line)}" for line in topic.quality)
    outcome = topic.unit.outcome
    for each in outcome.evidence[:_MAX_EVIDENCE]:
        yield f"- {each.verdict}: {_escape_markdown(format_evidence(outcome.scope, each))}"
    rest = len(outcome.evidence) - _MAX_EVIDENCE
    if rest > 0:
        yield f"- {rest:,} more in the results store"


def _escape_markdown(text: str) -> str:
    """Escape Markdown and HTML: names may contain their special characters."""
    for sign in "\\`*_[]|":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")


JSON_VERSION: Final = 1


class LatencyRecords(AuditModel):
    """The records of a latency, and their average."""

    records: int
    clock_skewed_records: int
    average_seconds: PercentileBounds | None


class ReportedFigures(AuditModel):
    """Figures of a topic, a partition or a flow; counts of a sample are unscaled, rates are not."""

    counts: dict[Verdict, int]
    faults: int
    order_judged: bool
    end_to_end_latency_seconds: dict[str, PercentileBounds | None]
    end_to_end: LatencyRecords
    transfer_latency_seconds: dict[str, PercentileBounds | None]
    transfer: LatencyRecords
    without_arrival_time: int
    records_per_second: float
    bytes_per_second: float


class PartitionFigures(ReportedFigures):
    partition: str


class FlowFigures(ReportedFigures):
    flow: str


class KeyRecords(AuditModel):
    """Records of keys: moved ones of target records, out of order ones of source records."""

    source_records: int
    target_records: int
    moved: int
    out_of_order: int | None
    broken_key_hashes: tuple[Hash, ...]


class ReplayedBlock(AuditModel):
    """Target offsets [start, end), and the records of the window among them."""

    partition: int
    start: int
    end: int
    size: int


class ReportedTopic(AuditedTopic, ReportedFigures):
    comparison: Comparison
    complete_up_to: Instant
    key_records: KeyRecords
    quality: tuple[str, ...]
    partitions: tuple[PartitionFigures, ...]
    replays: tuple[ReplayedBlock, ...]
    directories: tuple[str, ...]


class AuditReport(AuditDetail):
    """The run as `/audits/{run}` returns it, with what only the report file has."""

    topics: tuple[ReportedTopic | AuditedTopic, ...]
    version: int
    result: Result
    salt: int
    config_hash: str
    notes: tuple[str, ...]
    complete_up_to_by_flow: dict[str, Instant]
    flow_figures: tuple[FlowFigures, ...]
    evidence: tuple[EvidenceRecord, ...]


def build_json_document(report: RunReport) -> dict[str, Any]:
    """The report as dictionaries and lists."""
    conclusion, header = report.conclusion, report.header
    run = Run(
        header=header,
        state=RunState.FINISHED,
        finished_at=report.finished_at,
        exit_code=conclusion.exit_code,
        verdict_line=conclusion.line,
        complete_up_to=conclusion.complete_up_to,
        bytes_read=report.bytes_read,
    )
    topics = [compute_topic_figures(unit, report.sample) for unit in report.units]
    document = AuditReport.of(
        run,
        topics=[*map(_reported_topic, topics), *map(_unaudited_topic, report.not_audited)],
        version=JSON_VERSION,
        result=conclusion.result,
        salt=header.salt,
        config_hash=header.config_hash,
        notes=report.notes,
        complete_up_to_by_flow={flow.label: at for flow, at in conclusion.by_flow.items()},
        flow_figures=[
            {"flow": each.name, **_figure_fields(each)} for each in compute_flow_figures(report)
        ],
        evidence=[
            EvidenceRecord.of(
                StoredEvidence(
                    place=EvidencePlace(scope.window.start, header.id, scope.index, number),
                    target_topic=scope.target_topic,
                    flow=scope.flows[each.flow].flow,
                    evidence=each,
                )
            )
            for unit in report.units
            for scope in [unit.outcome.scope]
            for number, each in enumerate(unit.outcome.evidence)
        ],
    )
    return document.model_dump(mode="json")


def _reported_topic(topic: TopicFigures) -> ReportedTopic:
    outcome = topic.unit.outcome
    affinity = outcome.affinity
    return ReportedTopic.model_validate(
        {
            **_figure_fields(topic.figures),
            "topic": outcome.scope.target_topic,
            "cluster": outcome.scope.flows[0].flow.target,
            "sources": outcome.scope.flows,
            "not_audited": None,
            "keys": affinity,
            "bounds": topic.unit.bounds,
            "order_judged": outcome.order_judged,
            "comparison": outcome.scope.comparison,
            "complete_up_to": topic.complete_up_to,
            "key_records": {
                "source_records": affinity.total.records,
                "target_records": affinity.total.copies,
                "moved": affinity.records_moved,
                "out_of_order": affinity.total.overtook if outcome.order_judged else None,
                "broken_key_hashes": affinity.broken_keys,
            },
            "quality": topic.quality,
            "partitions": [
                {"partition": each.name, **_figure_fields(each)} for each in topic.partitions
            ],
            "replays": outcome.replays,
            "directories": [each.path for each in topic.unit.directories],
        }
    )


def _unaudited_topic(topic: NotAudited) -> AuditedTopic:
    no_figures: dict[str, Any] = {
        "keys": AffinityOutcome(),
        "end_to_end_latency_seconds": latency_seconds(LatencyCells(), sampled=False),
        "bounds": (),
        "order_judged": False,
        **count_fields({}),
    }
    return AuditedTopic.model_validate(
        {
            "topic": topic.target_topic,
            "cluster": topic.flows[0].target,
            "sources": [{"flow": flow.label, "topic": None} for flow in topic.flows],
            "not_audited": topic,
            **no_figures,
        }
    )


def _figure_fields(figures: Figures) -> dict[str, Any]:
    return {
        **count_fields(figures.counts),
        "order_judged": figures.order_judged,
        **_latency_fields("end_to_end", figures.end_to_end),
        **_latency_fields("transfer", figures.transfer),
        "without_arrival_time": figures.without_bracket,
        "records_per_second": figures.throughput.records,
        "bytes_per_second": figures.throughput.size,
    }


def _latency_fields(name: str, latency: Latency) -> dict[str, Any]:
    return {
        f"{name}_latency_seconds": {
            percentile_name(q): bracket_seconds(each) for q, each in latency.percentiles.items()
        },
        name: {
            "records": latency.records,
            "clock_skewed_records": latency.negative,
            "average_seconds": bracket_seconds(latency.average),
        },
    }
