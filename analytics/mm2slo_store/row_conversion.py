"""Converts outcomes to rows and back.

A stored outcome differs in two things: its parts are in the order of `canonical`, and its identity
has no HMAC key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mm2slo_core.audit.audit_scope import (
    Comparison,
    NotAudited,
    NotAuditedReason,
    TimestampType,
    Window,
)
from mm2slo_core.audit.latency_histogram import merge
from mm2slo_core.audit.record_sample import SampleBy
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    Evidence,
    LatencyCells,
    PartitionOutcome,
    ReplayEvent,
    UnitOutcome,
)
from mm2slo_core.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_store import json_encoding
from mm2slo_store.audit_rows import (
    AuditRun,
    JudgedUnit,
    Run,
    RunDirectory,
    RunHeader,
    RunState,
    StoredFlow,
    StoredUnit,
    UnitKey,
    UnjudgedUnit,
)
from mm2slo_store.schema import NO_FLOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Row = dict[str, Any]
"""Values by column, as in SQLAlchemy."""


@dataclass(frozen=True, slots=True)
class UnitRows:
    """All rows of one unit by table, without `run_id` and `unit`."""

    unit: Row
    flows: list[Row]
    partitions: list[Row]
    evidence: list[Row]
    replays: list[Row]
    directories: list[Row]


def canonical(outcome: UnitOutcome) -> UnitOutcome:
    """The same outcome with its parts in canonical order."""
    affinity = outcome.affinity
    return replace(
        outcome,
        partitions=tuple(
            sorted(outcome.partitions, key=lambda each: (_flow_number(each.flow), each.partition))
        ),
        affinity=replace(
            affinity,
            broken_keys=tuple(sorted(affinity.broken_keys)),
            cells=tuple(sorted(affinity.cells)),
        ),
        replays=tuple(sorted(outcome.replays, key=lambda each: (each.partition, each.start))),
        evidence=tuple(sorted(outcome.evidence, key=_evidence_order)),
    )


def judged_rows(judged: JudgedUnit) -> UnitRows:
    """The rows of a unit with an outcome."""
    outcome = canonical(judged.outcome)
    scope, affinity = outcome.scope, outcome.affinity
    unit = {
        **_key_row(UnitKey.of(scope), scope.window),
        "judged": True,
        "reason": None,
        "detail": None,
        "comparison": scope.comparison.value,
        "target_time": scope.target_time.value,
        "keyed": scope.identity.hmac_key is not None,
        "counts": json_encoding.encode_counts(outcome.counts),
        "copied_again": outcome.copied_again,
        "source_bytes": sum(each.source_bytes for each in outcome.partitions),
        "without_bracket": sum(each.without_bracket for each in outcome.partitions),
        "end_to_end": json_encoding.encode_latency(
            merge(each.end_to_end for each in outcome.partitions)
        ),
        "transfer": json_encoding.encode_latency(
            merge(each.transfer for each in outcome.partitions)
        ),
        "keys": affinity.keys,
        "keys_split": affinity.keys_split,
        "keys_disordered": affinity.keys_disordered,
        "records_moved": affinity.records_moved,
        "broken_keys": list(affinity.broken_keys),
        "key_cells": json_encoding.encode_key_cells(affinity.cells),
        "oldest_open": outcome.oldest_open,
        "order_judged": outcome.order_judged,
        "bounds": json_encoding.encode_bounds(judged.bounds),
        "scope": json_encoding.encode_scope(scope),
    }
    return UnitRows(
        unit=unit,
        flows=_flow_rows((each.flow, each.source_topic) for each in scope.flows),
        partitions=[_partition_row(each) for each in outcome.partitions],
        evidence=[
            {"number": number, **_evidence_row(each)}
            for number, each in enumerate(outcome.evidence)
        ],
        replays=[
            {
                "number": number,
                "partition": each.partition,
                "start_offset": each.start,
                "end_offset": each.end,
                "size": each.size,
            }
            for number, each in enumerate(outcome.replays)
        ],
        directories=[
            {
                "number": number,
                "path": each.path,
                "kind": each.kind,
                "rows": each.rows,
                "size": each.size,
            }
            for number, each in enumerate(judged.directories)
        ],
    )


def unjudged_rows(unjudged: UnjudgedUnit) -> UnitRows:
    """The rows of a unit without a verdict."""
    nothing = json_encoding.encode_latency(LatencyCells())
    key = UnitKey.named(unjudged.not_audited.target_topic, unjudged.flows)
    unit = {
        **_key_row(key, unjudged.window),
        "judged": False,
        "reason": unjudged.not_audited.reason.value,
        "detail": _storable(unjudged.not_audited.detail),
        "comparison": Comparison.RECORDS.value,
        "target_time": TimestampType.CREATE.value,
        "keyed": False,
        "counts": {},
        "copied_again": 0,
        "source_bytes": 0,
        "without_bracket": 0,
        "end_to_end": nothing,
        "transfer": nothing,
        "keys": 0,
        "keys_split": 0,
        "keys_disordered": 0,
        "records_moved": 0,
        "broken_keys": [],
        "key_cells": [],
        "oldest_open": None,
        "order_judged": False,
        "bounds": [],
        "scope": {},
    }
    flows = _flow_rows((flow, None) for flow in key.flows)
    return UnitRows(unit, flows, [], [], [], [])


def stored_unit(rows: Sequence[Mapping[Any, Any]]) -> StoredUnit:
    """The summary of a unit from its row joined with each of the ordered rows of its flows."""
    unit = rows[0]
    known = tuple(StoredFlow(Flow.parse(each["label"]), each["source_topic"]) for each in rows)
    not_audited = None
    if not unit["judged"]:
        reason = NotAuditedReason(unit["reason"])
        not_audited = NotAudited(unit["target_topic"], reason, unit["detail"])
    return StoredUnit(
        run_id=unit["run_id"],
        unit=unit["unit"],
        key=UnitKey.named(unit["target_topic"], tuple(each.flow for each in known)),
        window=Window(unit["window_start"], unit["window_end"]),
        flows=known,
        not_audited=not_audited,
        counts=json_encoding.decode_counts(unit["counts"]),
        copied_again=unit["copied_again"],
        source_bytes=unit["source_bytes"],
        end_to_end=json_encoding.decode_latency(unit["end_to_end"]),
        transfer=json_encoding.decode_latency(unit["transfer"]),
        without_bracket=unit["without_bracket"],
        affinity=_affinity_from_row(unit),
        bounds=json_encoding.decode_bounds(unit["bounds"]),
        comparison=Comparison(unit["comparison"]),
        target_time=TimestampType(unit["target_time"]),
        keyed=unit["keyed"],
        oldest_open=unit["oldest_open"],
        order_judged=unit["order_judged"],
    )


def outcome_from_rows(
    unit: Mapping[Any, Any],
    partitions: Iterable[Mapping[Any, Any]],
    evidence: Iterable[Mapping[Any, Any]],
    replays: Iterable[Mapping[Any, Any]],
) -> UnitOutcome:
    """The outcome of a judged unit from its ordered rows."""
    return UnitOutcome(
        scope=json_encoding.decode_scope(unit["scope"]),
        partitions=tuple(_partition_from_row(each) for each in partitions),
        affinity=_affinity_from_row(unit),
        copied_again=unit["copied_again"],
        replays=tuple(
            ReplayEvent(each["partition"], each["start_offset"], each["end_offset"], each["size"])
            for each in replays
        ),
        evidence=tuple(evidence_from_row(each) for each in evidence),
        oldest_open=unit["oldest_open"],
        order_judged=unit["order_judged"],
    )


def evidence_from_row(row: Mapping[Any, Any]) -> Evidence:
    """An anomaly from its row."""
    return Evidence(
        verdict=Verdict(row["verdict"]),
        side=Side(row["side"]),
        flow=row["flow"],
        partition=row["partition"],
        offset=row["record_offset"],
        timestamp=row["record_timestamp"],
        fingerprint=row["fingerprint"],
        key_hash=row["key_hash"],
        other_partition=row["other_partition"],
        other_offset=row["other_offset"],
        block=row["block"],
    )


def directory_from_row(row: Mapping[Any, Any]) -> RunDirectory:
    """A run directory from its row."""
    return RunDirectory(row["path"], row["kind"], row["rows"], row["size"])


def header_row(header: RunHeader, state: RunState) -> Row:
    """The row of a run with only a header."""
    return {
        "id": header.id,
        "state": state.value,
        "flows": sorted({flow.label for flow in header.flows}),
        "window_start": header.window.start,
        "window_end": header.window.end,
        "started_at": header.started_at,
        "finished_at": None,
        "sample_rate": header.sample_rate,
        "sample_by": header.sample_by.value,
        "salt": header.salt,
        "config_hash": header.config_hash,
        "versions": dict(header.versions),
        "exit_code": None,
        "verdict_line": None,
        "complete_up_to": None,
        "bytes_read": None,
        "superseded_units": 0,
    }


def run_row(run: AuditRun) -> Row:
    """The row of a finished run."""
    return {
        **header_row(run.header, RunState.FINISHED),
        "finished_at": run.finished_at,
        "exit_code": run.exit_code,
        "verdict_line": _storable(run.verdict_line),
        "complete_up_to": run.complete_up_to,
        "bytes_read": run.bytes_read,
    }


def failed_row(header: RunHeader, finished_at: int, why: str) -> Row:
    """The row of a run that failed."""
    return {
        **header_row(header, RunState.FAILED),
        "finished_at": finished_at,
        "verdict_line": _storable(why),
    }


def run_from_row(row: Mapping[Any, Any]) -> Run:
    """A run from its row."""
    return Run(
        header=RunHeader(
            id=row["id"],
            flows=tuple(Flow.parse(label) for label in row["flows"]),
            window=Window(row["window_start"], row["window_end"]),
            started_at=row["started_at"],
            sample_rate=row["sample_rate"],
            sample_by=SampleBy(row["sample_by"]),
            salt=row["salt"],
            config_hash=row["config_hash"],
            versions=row["versions"],
        ),
        state=RunState(row["state"]),
        finished_at=row["finished_at"],
        exit_code=row["exit_code"],
        verdict_line=row["verdict_line"],
        complete_up_to=row["complete_up_to"],
        bytes_read=row["bytes_read"],
        superseded_units=row["superseded_units"],
    )


def _key_row(key: UnitKey, window: Window) -> Row:
    return {
        "target_cluster": key.target_cluster,
        "target_topic": key.target_topic,
        "flow_set": key.flow_set,
        "window_start": window.start,
        "window_end": window.end,
    }


def _flow_rows(flows: Iterable[tuple[Flow, str | None]]) -> list[Row]:
    return [
        {"flow": number, "label": flow.label, "source_topic": source_topic}
        for number, (flow, source_topic) in enumerate(flows)
    ]


def _partition_row(outcome: PartitionOutcome) -> Row:
    return {
        "flow": _flow_number(outcome.flow),
        "partition": outcome.partition,
        "counts": json_encoding.encode_counts(outcome.counts),
        "source_bytes": outcome.source_bytes,
        "without_bracket": outcome.without_bracket,
        "end_to_end": json_encoding.encode_latency(outcome.end_to_end),
        "transfer": json_encoding.encode_latency(outcome.transfer),
    }


def _partition_from_row(row: Mapping[Any, Any]) -> PartitionOutcome:
    return PartitionOutcome(
        flow=None if row["flow"] == NO_FLOW else row["flow"],
        partition=row["partition"],
        counts=json_encoding.decode_counts(row["counts"]),
        source_bytes=row["source_bytes"],
        end_to_end=json_encoding.decode_latency(row["end_to_end"]),
        transfer=json_encoding.decode_latency(row["transfer"]),
        without_bracket=row["without_bracket"],
    )


def _evidence_row(evidence: Evidence) -> Row:
    return {
        "verdict": evidence.verdict.value,
        "side": evidence.side.value,
        "flow": evidence.flow,
        "partition": evidence.partition,
        "record_offset": evidence.offset,
        "record_timestamp": evidence.timestamp,
        "fingerprint": evidence.fingerprint,
        "key_hash": evidence.key_hash,
        "other_partition": evidence.other_partition,
        "other_offset": evidence.other_offset,
        "block": evidence.block,
    }


def _evidence_order(evidence: Evidence) -> tuple[Any, ...]:
    return (
        evidence.verdict.value,
        evidence.side.value,
        evidence.flow,
        evidence.partition,
        evidence.offset,
    )


def _affinity_from_row(unit: Mapping[Any, Any]) -> AffinityOutcome:
    return AffinityOutcome(
        keys=unit["keys"],
        keys_split=unit["keys_split"],
        keys_disordered=unit["keys_disordered"],
        records_moved=unit["records_moved"],
        broken_keys=tuple(unit["broken_keys"]),
        cells=json_encoding.decode_key_cells(unit["key_cells"]),
    )


def _flow_number(flow: int | None) -> int:
    return NO_FLOW if flow is None else flow


def _storable(text: str) -> str:
    """Without NUL, which PostgreSQL cannot store in text."""
    return text.replace("\x00", "")
