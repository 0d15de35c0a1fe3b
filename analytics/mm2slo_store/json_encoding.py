"""Values that are stored as JSON. Encoding is canonical: equal values have equal text.

Lists are sorted and zero counts are left out. Decoders may raise KeyError, ValueError or
TypeError on values of other versions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.audit.audit_scope import (
    Comparison,
    FlowScope,
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.record_identity import Identity
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import KeyCell, LatencyCells
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import StatedBound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


def encode_counts(counts: Mapping[Verdict, int]) -> Form:
    """Counts by verdict."""
    return {verdict.value: count for verdict, count in counts.items() if count}


def decode_counts(form: Form) -> Mapping[Verdict, int]:
    """Decode `encode_counts`."""
    return {Verdict(verdict): count for verdict, count in form.items()}


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
