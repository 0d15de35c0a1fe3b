"""JSON documents of audits, with the field names of `mm2slo audit --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mm2slo_core.audit.latency_histogram import PERCENTILES, percentile, percentile_name
from mm2slo_core.audit.record_verdict import FAULTS, Verdict
from mm2slo_report.rendering.value_format import utc

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_core.audit.unit_outcome import LatencyCells
    from mm2slo_core.topology import Flow
    from mm2slo_store.audit_rows import Run, StoredEvidence, StoredUnit


def run_document(run: Run) -> dict[str, Any]:
    header = run.header
    return {
        "id": header.id,
        "state": run.state.value,
        "flows": [flow.label for flow in header.flows],
        "window": {"start": utc(header.window.start), "end": utc(header.window.end)},
        "started_at": utc(header.started_at),
        "finished_at": _utc(run.finished_at),
        "exit_code": run.exit_code,
        "verdict": run.verdict_line,
        "complete_up_to": _utc(run.complete_up_to),
        "sample_rate": header.sample_rate,
        "superseded_topics": run.superseded_units,
        "versions": dict(header.versions),
        "links": {"self": f"/audits/{header.id}", "evidence": f"/audits/{header.id}/evidence"},
    }


def unit_document(unit: StoredUnit, sees: Callable[[Flow], bool]) -> dict[str, Any]:
    """A topic, with those of its sources whose flow the caller *sees*."""
    reason = unit.not_audited
    return {
        "topic": unit.key.target_topic,
        "cluster": unit.key.target_cluster,
        "sources": [
            {"flow": each.flow.label, "topic": each.source_topic}
            for each in unit.flows
            if sees(each.flow)
        ],
        "not_audited": None
        if reason is None
        else {"reason": reason.reason.value, "detail": reason.detail},
        "counts": {each.value: unit.counts.get(each, 0) for each in Verdict},
        "faults": sum(unit.counts.get(each, 0) for each in FAULTS),
        "keys": {
            "seen": unit.affinity.keys,
            "split": unit.affinity.keys_split,
            "disordered": unit.affinity.keys_disordered,
        },
        "end_to_end_latency": _latency(unit.end_to_end),
        "bounds": [
            {"name": each.name, "lower": each.lower, "upper": each.upper, "sentence": each.sentence}
            for each in unit.bounds
        ],
        "order_judged": unit.order_judged,
    }


def evidence_document(found: StoredEvidence) -> dict[str, Any]:
    """One anomaly: its location and hashes, never its payload."""
    each = found.evidence
    return {
        "verdict": each.verdict.value,
        "side": each.side.value,
        "flow": found.flow.label,
        "topic": found.target_topic,
        "partition": each.partition,
        "offset": each.offset,
        "timestamp": utc(each.timestamp) if each.timestamp >= 0 else None,
        "fingerprint": _hash(each.fingerprint),
        "key_hash": None if each.key_hash is None else _hash(each.key_hash),
        "other_partition": each.other_partition,
        "other_offset": each.other_offset,
        "block": each.block,
    }


def _latency(cells: LatencyCells) -> dict[str, Any]:
    """Bounds of the percentiles in seconds; null with too few records."""
    found: dict[str, Any] = {}
    for q in PERCENTILES:
        bracket = percentile(cells, q, sampled=True)
        found[percentile_name(q)] = bracket and {
            "lower": None if bracket.lower is None else bracket.lower / 1000,
            "upper": bracket.upper / 1000,
        }
    return found


def _utc(at: int | None) -> str | None:
    return None if at is None else utc(at)


def _hash(value: int) -> str:
    """16 hex digits: JavaScript numbers cannot hold 64 bits."""
    return f"{value & (1 << 64) - 1:016x}"
