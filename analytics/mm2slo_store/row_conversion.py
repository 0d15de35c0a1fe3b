"""Converts outcomes to rows and back, and values that are stored as JSON.

A stored outcome differs in two things: its parts are in the order of `canonical`, and its identity
has no HMAC key. JSON is canonical: equal values have equal text, lists are sorted and zero counts
are left out. Decoders may raise KeyError, ValueError or TypeError on values of other versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Final, TypeVar

from mm2slo_core.audit.audit_scope import (
    Comparison,
    FlowScope,
    NotAudited,
    NotAuditedReason,
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    Evidence,
    KeyCell,
    LatencyCells,
    ReplayEvent,
    UnitOutcome,
    Verdict,
    merge_latencies,
)
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import (
    AuditRun,
    JudgedUnit,
    Run,
    RunHeader,
    RunState,
    StatedBound,
    StoredFlow,
    StoredUnit,
    UnitKey,
    UnjudgedUnit,
)
from mm2slo_store.store_schema import NO_FLOW

T = TypeVar("T")

Row = dict[str, Any]
"""Values by column, as in SQLAlchemy."""

_MEMBERS: Final = {
    "verdict": Verdict,
    "side": Side,
    "comparison": Comparison,
    "target_time": TimestampType,
    "state": RunState,
}


def encode_latency(latency: LatencyCells) -> Form:
    """A histogram: its cells as [lower bucket or null, upper bucket, records]."""
    cells = ((lower, upper, n) for (lower, upper), n in latency.cells.items() if n)
    known_last = sorted(cells, key=lambda cell: (cell[0] is not None, cell[0] or 0, cell[1]))
    return {
        "cells": known_last,
        "negative": latency.negative,
        "total_lower_ms": latency.total_lower_ms,
        "total_upper_ms": latency.total_upper_ms,
    }


def decode_latency(form: Form) -> LatencyCells:
    """Decode `encode_latency`."""
    return LatencyCells(
        cells={(lower, upper): n for lower, upper, n in form["cells"]},
        negative=form["negative"],
        total_upper_ms=form["total_upper_ms"],
        total_lower_ms=form["total_lower_ms"],
    )


_LATENCY: Final = (encode_latency, decode_latency)


def encode_counts(counts: Mapping[Verdict, int]) -> Form:
    """Counts by verdict."""
    return {verdict.value: count for verdict, count in counts.items() if count}


def decode_counts(form: Form) -> Mapping[Verdict, int]:
    """Decode `encode_counts`."""
    return {Verdict(verdict): count for verdict, count in form.items()}


def encode_key_cells(cells: Iterable[KeyCell]) -> Form:
    """Sizes of keys as [keys, records, copies, moved, overtook]."""
    return [
        [each.keys, each.records, each.copies, each.moved, each.overtook] for each in sorted(cells)
    ]


def decode_key_cells(form: Form) -> tuple[KeyCell, ...]:
    """Decode `encode_key_cells`."""
    return tuple(KeyCell(*each) for each in form)


def encode_bounds(bounds: Iterable[StatedBound]) -> Form:
    """Stated bounds in their order."""
    return [[each.name, each.lower, each.upper, each.sentence] for each in bounds]


def decode_bounds(form: Form) -> tuple[StatedBound, ...]:
    """Decode `encode_bounds`."""
    return tuple(StatedBound(*each) for each in form)


def encode_scope(scope: UnitScope) -> Form:
    """A scope without its HMAC key; partitions as lists."""
    return {
        "index": scope.index,
        "target_topic": scope.target_topic,
        "flows": [_encode_flow(each) for each in scope.flows],
        "partitions": _figures(scope.partitions, _TARGET),
        "window": [scope.window.start, scope.window.end],
        "identity": encode_identity(scope.identity),
        "comparison": scope.comparison.value,
        "target_time": scope.target_time.value,
        "taken_at": scope.taken_at,
        "max_pending": scope.max_pending,
        "tombstones_kept": scope.tombstones_kept,
        "earlier": [encode_scope(each) for each in scope.earlier],
    }


def decode_scope(form: Form) -> UnitScope:
    """Decode `encode_scope`."""
    return UnitScope(
        index=form["index"],
        target_topic=form["target_topic"],
        flows=tuple(_decode_flow(each) for each in form["flows"]),
        partitions=tuple(
            TargetPartition(**dict(zip(_TARGET, each, strict=True))) for each in form["partitions"]
        ),
        window=Window(*form["window"]),
        identity=decode_identity(form["identity"]),
        comparison=Comparison(form["comparison"]),
        target_time=TimestampType(form["target_time"]),
        taken_at=form["taken_at"],
        max_pending=form["max_pending"],
        tombstones_kept=form["tombstones_kept"],
        earlier=tuple(decode_scope(each) for each in form["earlier"]),
    )


_CODECS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    **{name: (attrgetter("value"), kind) for name, kind in _MEMBERS.items()},
    "counts": (encode_counts, decode_counts),
    "end_to_end": _LATENCY,
    "transfer": _LATENCY,
    "key_cells": (encode_key_cells, decode_key_cells),
    "bounds": (encode_bounds, decode_bounds),
    "scope": (encode_scope, decode_scope),
    "broken_keys": (list, tuple),
    "versions": (dict, dict),
}
"""Writes and reads values of a column of that name; all others are stored as they are."""

_RENAMED: Final[Mapping[type, Mapping[str, str]]] = {
    Evidence: {"offset": "record_offset", "timestamp": "record_timestamp"},
    ReplayEvent: {"start": "start_offset", "end": "end_offset"},
    AffinityOutcome: {"cells": "key_cells"},
    Exclusion: {"start": "start_at", "end": "end_at", "who": "added_by"},
}
"""Columns of fields that have another name, by type."""


@dataclass(frozen=True, slots=True)
class UnitRows:
    """All rows of one unit by table, without `run_id` and `unit`."""

    unit: Row
    flows: list[Row]
    partitions: list[Row]
    evidence: list[Row]
    replays: list[Row]
    directories: list[Row]


def to_row(value: Any) -> Row:
    """The fields of a dataclass by column."""
    return _encode(_by_column(value))


def from_row(kind: type[T], row: Mapping[Any, Any], **given: Any) -> T:
    """The dataclass *kind* from the columns of its fields, except those *given*."""
    columns = _columns(kind)
    return kind(
        **{name: _decode(columns[name], row) for name in columns if name not in given}, **given
    )


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
    scope, partitions = outcome.scope, outcome.partitions
    unit = {
        **_key_row(UnitKey.of(scope), scope.window),
        **_by_column(outcome.affinity),
        "judged": True,
        "reason": None,
        "detail": None,
        "comparison": scope.comparison,
        "target_time": scope.target_time,
        "keyed": scope.identity.hmac_key is not None,
        "counts": outcome.counts,
        "copied_again": outcome.copied_again,
        "source_bytes": sum(each.source_bytes for each in partitions),
        "without_bracket": sum(each.without_bracket for each in partitions),
        "end_to_end": merge_latencies(each.end_to_end for each in partitions),
        "transfer": merge_latencies(each.transfer for each in partitions),
        "oldest_open": outcome.oldest_open,
        "order_judged": outcome.order_judged,
        "bounds": judged.bounds,
        "scope": scope,
    }
    return UnitRows(
        unit=_encode(unit),
        flows=_flow_rows((each.flow, each.source_topic) for each in scope.flows),
        partitions=[to_row(each) | {"flow": _flow_number(each.flow)} for each in partitions],
        evidence=_numbered(outcome.evidence),
        replays=_numbered(outcome.replays),
        directories=_numbered(judged.directories),
    )


def unjudged_rows(unjudged: UnjudgedUnit) -> UnitRows:
    """The rows of a unit without a verdict."""
    key = UnitKey.named(unjudged.not_audited.target_topic, unjudged.flows)
    unit = {
        **_key_row(key, unjudged.window),
        **_by_column(AffinityOutcome()),
        "judged": False,
        "reason": unjudged.not_audited.reason.value,
        "detail": _storable(unjudged.not_audited.detail),
        "comparison": Comparison.RECORDS,
        "target_time": TimestampType.CREATE,
        "keyed": False,
        "counts": {},
        "copied_again": 0,
        "source_bytes": 0,
        "without_bracket": 0,
        "end_to_end": LatencyCells(),
        "transfer": LatencyCells(),
        "oldest_open": None,
        "order_judged": False,
        "bounds": (),
    }
    flows = _flow_rows((flow, None) for flow in key.flows)
    return UnitRows(_encode(unit) | {"scope": {}}, flows, [], [], [], [])


def stored_unit(rows: Sequence[Mapping[Any, Any]]) -> StoredUnit:
    """The summary of a unit from its row joined with each of the ordered rows of its flows."""
    unit = rows[0]
    known = tuple(StoredFlow(Flow.parse(each["label"]), each["source_topic"]) for each in rows)
    not_audited = None
    if not unit["judged"]:
        reason = NotAuditedReason(unit["reason"])
        not_audited = NotAudited(unit["target_topic"], reason, unit["detail"])
    return from_row(
        StoredUnit,
        unit,
        key=UnitKey.named(unit["target_topic"], tuple(each.flow for each in known)),
        window=Window(unit["window_start"], unit["window_end"]),
        flows=known,
        not_audited=not_audited,
        affinity=from_row(AffinityOutcome, unit),
    )


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
    header = from_row(
        RunHeader,
        row,
        flows=tuple(map(Flow.parse, row["flows"])),
        window=Window(row["window_start"], row["window_end"]),
    )
    return from_row(Run, row, header=header)


def _columns(kind: type) -> Mapping[str, str]:
    """The columns of the fields of *kind*."""
    renamed = _RENAMED.get(kind, {})
    return {each.name: renamed.get(each.name, each.name) for each in fields(kind)}


def _by_column(value: Any) -> Row:
    return {column: getattr(value, name) for name, column in _columns(type(value)).items()}


def _encode(row: Row) -> Row:
    return {
        column: _CODECS[column][0](value) if column in _CODECS else value
        for column, value in row.items()
    }


def _decode(column: str, row: Mapping[Any, Any]) -> Any:
    return _CODECS[column][1](row[column]) if column in _CODECS else row[column]


def _numbered(values: Iterable[Any]) -> list[Row]:
    return [{"number": number, **to_row(each)} for number, each in enumerate(values)]


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


def _evidence_order(evidence: Evidence) -> tuple[Any, ...]:
    return (
        evidence.verdict.value,
        evidence.side.value,
        evidence.flow,
        evidence.partition,
        evidence.offset,
    )


def _flow_number(flow: int | None) -> int:
    return NO_FLOW if flow is None else flow


def _storable(text: str) -> str:
    """Without NUL, which PostgreSQL cannot store in text."""
    return text.replace("\x00", "")


Form = Any
"""A value that `json` can write."""

_SOURCE: Final = (
    "partition",
    "log_start",
    "read_from",
    "end",
    "next_offset",
    "known_from",
    "expired",
)
_TARGET: Final = ("partition", "log_start", "read_from", "end", "auditable_from")
_COVERED: Final = ("key", "value", "headers", "timestamp")


def dumps(form: Form) -> str:
    """The canonical text of *form*."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)


def encode_identity(identity: Identity) -> Form:
    """The fields that the fingerprint covers, without the HMAC key, which is never stored."""
    covered = [part for part in _COVERED if getattr(identity, part)]
    return {
        "covers": covered,
        "ignored_headers": sorted(identity.ignored_headers),
        "must_change": list(identity.must_change),
    }


def decode_identity(form: Form) -> Identity:
    """Decode `encode_identity`; without the HMAC key."""
    covers = form["covers"]
    return Identity(
        key="key" in covers,
        value="value" in covers,
        headers="headers" in covers,
        timestamp="timestamp" in covers,
        ignored_headers=tuple(form["ignored_headers"]),
        must_change=tuple(form["must_change"]),
    )


def _encode_flow(flow: FlowScope) -> Form:
    return {
        "flow": flow.flow.label,
        "source_topic": flow.source_topic,
        "partitions": _figures(flow.partitions, _SOURCE),
        "source_time": flow.source_time.value,
        "has_positions": flow.has_positions,
    }


def _decode_flow(form: Form) -> FlowScope:
    return FlowScope(
        flow=Flow.parse(form["flow"]),
        source_topic=form["source_topic"],
        partitions=tuple(
            SourcePartition(**dict(zip(_SOURCE, each, strict=True))) for each in form["partitions"]
        ),
        source_time=TimestampType(form["source_time"]),
        has_positions=form["has_positions"],
    )


def _figures(
    partitions: Iterable[SourcePartition | TargetPartition], names: tuple[str, ...]
) -> list[list[int | None]]:
    ordered = sorted(partitions, key=lambda each: each.partition)
    return [[getattr(each, name) for name in names] for each in ordered]
