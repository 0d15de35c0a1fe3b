"""The report as JSON for programs, documented in docs/audit.md.

Within a version fields are added, never renamed or removed. Times are epoch ms (`_ms`) or
ISO 8601 in UTC; unknown figures are null.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from mm2slo_audit.report.audit_figures import Figures, compute_flow_figures, compute_topic_figures
from mm2slo_audit.run.time_span import format_utc
from mm2slo_core.audit.latency_histogram import percentile_name
from mm2slo_core.audit.record_verdict import FAULTS, Verdict

if TYPE_CHECKING:
    from mm2slo_audit.report.audit_figures import Latency, TopicFigures
    from mm2slo_audit.run.run_report import RunReport
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.latency_histogram import Bracket
    from mm2slo_core.audit.unit_outcome import Evidence, UnitOutcome

VERSION: Final = 1


def render_json(report: RunReport) -> str:
    """The report as indented JSON."""
    return json.dumps(build_document(report), indent=2, ensure_ascii=False) + "\n"


def build_document(report: RunReport) -> dict[str, Any]:
    """The report as dictionaries and lists."""
    conclusion = report.conclusion
    return {
        "version": VERSION,
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
            "complete_up_to": _moment(conclusion.complete_up_to),
            "complete_up_to_ms": conclusion.complete_up_to,
            "by_flow": {
                flow.label: format_utc(until) for flow, until in conclusion.by_flow.items()
            },
        },
        "flows": [{"flow": each.name, **_figures(each)} for each in compute_flow_figures(report)],
        "topics": [_topic(compute_topic_figures(unit, report.sample)) for unit in report.units],
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


def _topic(topic: TopicFigures) -> dict[str, Any]:
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
        **_figures(topic.figures),
        "affinity": {
            "keys": outcome.affinity.keys,
            "keys_split": outcome.affinity.keys_split,
            "keys_disordered": outcome.affinity.keys_disordered,
            "records_moved": outcome.affinity.records_moved,
            **_of_keys(outcome),
            "broken_key_hashes": [_hash(each) for each in outcome.affinity.broken_keys],
        },
        "bounds": [asdict(bound) for bound in topic.unit.bounds],
        "quality": list(topic.quality),
        "partitions": [{"partition": each.name, **_figures(each)} for each in topic.partitions],
        "replays": [asdict(each) for each in outcome.replays],
        "evidence": [_evidence(scope, each) for each in outcome.evidence],
        "directories": [each.path for each in topic.unit.directories],
    }


def _of_keys(outcome: UnitOutcome) -> dict[str, int | None]:
    """Denominators of rates: target records for moved, source records for out of order."""
    total = outcome.affinity.total
    return {
        "source_records": total.records,
        "target_records": total.copies,
        "records_out_of_order": total.overtook if outcome.order_judged else None,
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "counts": {
            each.value: figures.counts.get(each, 0)
            if each is not Verdict.OUT_OF_ORDER or figures.order_judged
            else None
            for each in Verdict
        },
        "faults": sum(figures.counts.get(each, 0) for each in FAULTS),
        "end_to_end_latency": _latency(figures.end_to_end),
        "transfer_latency": _latency(figures.transfer),
        "without_arrival_time": figures.without_bracket,
        "records_per_second": round(figures.throughput.records, 3),
        "bytes_per_second": round(figures.throughput.size, 3),
    }


def _latency(found: Latency) -> dict[str, Any]:
    return {
        "records": found.records,
        "clock_skewed_records": found.negative,
        "average_ms": _bracket(found.average),
        **{f"{percentile_name(q)}_ms": _bracket(value) for q, value in found.percentiles.items()},
    }


def _bracket(found: Bracket | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    lower = None if found.lower is None else round(found.lower, 3)
    return {"lower": lower, "upper": round(found.upper, 3)}


def _evidence(scope: UnitScope, each: Evidence) -> dict[str, Any]:
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
        "fingerprint": _hash(each.fingerprint),
        "key_hash": None if each.key_hash is None else _hash(each.key_hash),
        "other_partition": each.other_partition,
        "other_offset": each.other_offset,
        "block": each.block,
    }


def _hash(value: int) -> str:
    """16 hexadecimal digits: JavaScript cannot represent 64-bit integers."""
    return f"{value & (1 << 64) - 1:016x}"


def _moment(epoch_ms: int | None) -> str | None:
    return None if epoch_ms is None else format_utc(epoch_ms)
