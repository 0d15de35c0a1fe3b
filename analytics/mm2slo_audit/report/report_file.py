"""Writes a report to a file as HTML, Markdown or JSON; the suffix selects the format.

Markdown is for tickets and chats. JSON is for programs and documented in docs/audit.md: within a
version fields are added, never renamed or removed. Times are epoch ms (`_ms`) or ISO 8601 in UTC;
unknown figures are null.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from mm2slo_audit.audit_options import format_utc
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
from mm2slo_core.audit.audit_scope import UnitScope
from mm2slo_core.audit.unit_outcome import (
    FAULTS,
    Evidence,
    LatencyBracket,
    UnitOutcome,
    Verdict,
    percentile_name,
)
from mm2slo_core.user_errors import UserError


def render_markdown(report: RunReport) -> str:
    """The complete report."""
    return "\n".join(_markdown_lines(report)) + "\n"


def render_json(report: RunReport) -> str:
    """The report as indented JSON."""
    return json.dumps(build_json_document(report), indent=2, ensure_ascii=False) + "\n"


_FORMATS: Final[Mapping[str, Callable[[RunReport], str]]] = {
    ".html": render_html,
    ".htm": render_html,
    ".md": render_markdown,
    ".json": render_json,
}


def check_report_path(path: Path) -> Path:
    """Check before the run that a report can be written to *path*. Raises UserError if not."""
    if path.suffix.lower() not in _FORMATS:
        raise UserError(
            f"--report {str(path)!r} has an unknown suffix; expected .html, .md or .json"
        )
    if path.is_dir():
        raise UserError(f"--report {str(path)!r} is a folder; expected a file")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"--report {str(path)!r}: folder {folder} does not exist; create it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"--report {str(path)!r} cannot be written: permission denied")
    return path


def write_report(path: Path, report: RunReport) -> None:
    """Write *report* atomically in the format of the suffix. Raises UserError if that fails."""
    text = _FORMATS[path.suffix.lower()](report)
    part = path.with_name(f".{path.name}.part")
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
    yield f"- run: {report.run_id}"
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


def build_json_document(report: RunReport) -> dict[str, Any]:
    """The report as dictionaries and lists."""
    conclusion = report.conclusion
    return {
        "version": JSON_VERSION,
        "run": {
            "id": report.run_id,
            "started_at": format_utc(report.started_at),
            "finished_at": format_utc(report.finished_at),
            "flows": [flow.label for flow in report.flows],
            "window": {
                "start": format_utc(report.window.start),
                "end": format_utc(report.window.end),
                "start_ms": report.window.start,
                "end_ms": report.window.end,
            },
            "sample": {
                "rate": report.sample.rate,
                "salt": report.sample.salt,
                "census": report.sample.census,
            },
            "bytes_read": report.bytes_read,
            "config_hash": report.config_hash,
            "versions": dict(report.versions),
            "notes": list(report.notes),
        },
        "verdict": {
            "result": conclusion.result.value,
            "exit_code": report.exit_code,
            "line": conclusion.line,
            "complete_up_to": _json_time(conclusion.complete_up_to),
            "complete_up_to_ms": conclusion.complete_up_to,
            "by_flow": {
                flow.label: format_utc(until) for flow, until in conclusion.by_flow.items()
            },
        },
        "flows": [
            {"flow": each.name, **_json_figures(each)} for each in compute_flow_figures(report)
        ],
        "topics": [
            _json_topic(compute_topic_figures(unit, report.sample)) for unit in report.units
        ],
        "not_audited": [
            {
                "topic": each.target_topic,
                "flows": [flow.label for flow in each.flows],
                "reason": each.reason.value,
                "detail": each.detail,
            }
            for each in report.not_audited
        ],
    }


def _json_topic(topic: TopicFigures) -> dict[str, Any]:
    outcome = topic.unit.outcome
    scope = outcome.scope
    return {
        "topic": scope.target_topic,
        "cluster": scope.flows[0].flow.target,
        "sources": [
            {"flow": flow.label, "topic": source_topic} for flow, source_topic in topic.flows
        ],
        "comparison": scope.comparison.value,
        "complete_up_to": format_utc(topic.complete_up_to),
        "complete_up_to_ms": topic.complete_up_to,
        **_json_figures(topic.figures),
        "affinity": {
            "keys": outcome.affinity.keys,
            "keys_split": outcome.affinity.keys_split,
            "keys_disordered": outcome.affinity.keys_disordered,
            "records_moved": outcome.affinity.records_moved,
            **_json_key_records(outcome),
            "broken_key_hashes": [_json_hash(each) for each in outcome.affinity.broken_keys],
        },
        "bounds": [asdict(bound) for bound in topic.unit.bounds],
        "quality": list(topic.quality),
        "partitions": [
            {"partition": each.name, **_json_figures(each)} for each in topic.partitions
        ],
        "replays": [asdict(each) for each in outcome.replays],
        "evidence": [_json_evidence(scope, each) for each in outcome.evidence],
        "directories": [each.path for each in topic.unit.directories],
    }


def _json_key_records(outcome: UnitOutcome) -> dict[str, int | None]:
    """Denominators of rates: target records for moved, source records for out of order."""
    total = outcome.affinity.total
    return {
        "source_records": total.records,
        "target_records": total.copies,
        "records_out_of_order": total.overtook if outcome.order_judged else None,
    }


def _json_figures(figures: Figures) -> dict[str, Any]:
    return {
        "counts": {
            each.value: figures.counts.get(each, 0)
            if each is not Verdict.OUT_OF_ORDER or figures.order_judged
            else None
            for each in Verdict
        },
        "faults": sum(figures.counts.get(each, 0) for each in FAULTS),
        "end_to_end_latency": _json_latency(figures.end_to_end),
        "transfer_latency": _json_latency(figures.transfer),
        "without_arrival_time": figures.without_bracket,
        "records_per_second": round(figures.throughput.records, 3),
        "bytes_per_second": round(figures.throughput.size, 3),
    }


def _json_latency(found: Latency) -> dict[str, Any]:
    return {
        "records": found.records,
        "clock_skewed_records": found.negative,
        "average_ms": _json_bracket(found.average),
        **{
            f"{percentile_name(q)}_ms": _json_bracket(value)
            for q, value in found.percentiles.items()
        },
    }


def _json_bracket(found: LatencyBracket | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    lower = None if found.lower is None else round(found.lower, 3)
    return {"lower": lower, "upper": round(found.upper, 3)}


def _json_evidence(scope: UnitScope, each: Evidence) -> dict[str, Any]:
    flow = scope.flows[each.flow]
    source = each.side.value == "source"
    return {
        "verdict": each.verdict.value,
        "side": each.side.value,
        "flow": flow.flow.label,
        "topic": flow.source_topic if source else scope.target_topic,
        "partition": each.partition,
        "offset": each.offset,
        "timestamp": format_utc(each.timestamp),
        "timestamp_ms": each.timestamp,
        "fingerprint": _json_hash(each.fingerprint),
        "key_hash": None if each.key_hash is None else _json_hash(each.key_hash),
        "other_partition": each.other_partition,
        "other_offset": each.other_offset,
        "block": each.block,
    }


def _json_hash(value: int) -> str:
    """16 hexadecimal digits: JavaScript cannot represent 64-bit integers."""
    return f"{value & (1 << 64) - 1:016x}"


def _json_time(epoch_ms: int | None) -> str | None:
    return None if epoch_ms is None else format_utc(epoch_ms)
