"""Converts stored types to rows and back: a column per field, JSON for values read as a whole.

`stored_fields` is the one description of a type's columns: `to_row` and `from_row` use it, and so
does `store_schema` for the tables. A stored outcome differs in two things: its parts are in the
order of `canonical`, and its identity has no HMAC key. JSON is canonical: equal values have equal
text, lists are sorted and zero counts are left out. Decoders may raise KeyError, ValueError or
TypeError on values of other versions.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from operator import attrgetter
from types import NoneType
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter

from mm2slo_core.audit.audit_scope import (
    NotAudited,
    NotAuditedReason,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
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
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import (
    Completion,
    JudgedUnit,
    Run,
    RunHeader,
    StatedBound,
    StoredFlow,
    StoredUnit,
    UnitKey,
    UnjudgedUnit,
)

T = TypeVar("T")

Row = dict[str, Any]
"""Values by column, as in SQLAlchemy."""

Form = Any
"""A value that `json` can write."""

NO_FLOW: Final = -1
"""`flow` of rows about the target only; a key column cannot be null."""

_RENAMED: Final[Mapping[type, Mapping[str, str]]] = {
    Window: {"start": "window_start", "end": "window_end"},
    Evidence: {"offset": "record_offset", "timestamp": "record_timestamp"},
    ReplayEvent: {"start": "start_offset", "end": "end_offset"},
    AffinityOutcome: {"cells": "key_cells"},
    Exclusion: {"start": "start_at", "end": "end_at", "who": "added_by"},
    Completion: {"start": "start_at"},
}
"""Columns of fields that have another name, by type. `end` and `offset` are SQL keywords."""

_FLAT: Final = frozenset({Window, AffinityOutcome, RunHeader})
"""Parts whose fields are columns of the row they belong to."""

NOT_IN_UNIT_ROW: Final = ("key", "flows", "not_audited", "max_pending")
"""Fields of StoredUnit that are no column of that name: `_unit_row` and `unit_from_row`."""


class StoredField(NamedTuple):
    """A field of a stored type."""

    name: str
    column: str
    kind: Any
    """Its type, without None."""
    optional: bool

    @property
    def is_flat(self) -> bool:
        """Whether its own fields are columns, instead of the field."""
        return self.kind in _FLAT


@cache
def stored_fields(kind: Any) -> tuple[StoredField, ...]:
    """The fields of the dataclass *kind* in their order."""
    hints, renamed = get_type_hints(kind), _RENAMED.get(kind, {})
    found = []
    for name in (each.name for each in fields(kind)):
        options = get_args(hints[name])
        optional = NoneType in options
        (known,) = [each for each in options if each is not NoneType] if optional else [hints[name]]
        found.append(StoredField(name, renamed.get(name, name), known, optional))
    return tuple(found)


def to_row(value: Any, *, without: Sequence[str] = ()) -> Row:
    """The fields of a dataclass by column, except those *without*."""
    row: Row = {}
    hashable: Any = type(value)
    for name, column, kind, _ in stored_fields(hashable):
        part = getattr(value, name)
        if kind in _FLAT:
            row |= to_row(part)
        elif name not in without:
            row[column] = None if part is None else _codec(kind)[0](part)
    return row


def from_row(kind: type[T], row: Mapping[Any, Any], **given: Any) -> T:
    """The dataclass *kind* from the columns of its fields, except those *given*."""
    hashable: Any = kind  # mypy takes type[T] for unhashable
    read = {
        each.name: from_row(each.kind, row) if each.is_flat else _decode(each, row)
        for each in stored_fields(hashable)
        if each.name not in given
    }
    return kind(**read, **given)


def _decode(field: StoredField, row: Mapping[Any, Any]) -> Any:
    value = row[field.column]
    return None if value is None else _codec(field.kind)[1](value)


@dataclass(frozen=True, slots=True)
class UnitRows:
    """All rows of one unit by table; `run_id` and `unit` only in its own."""

    unit: Row
    flows: list[Row]
    partitions: list[Row]
    evidence: list[Row]
    replays: list[Row]
    directories: list[Row]


def unit_rows(published: JudgedUnit | UnjudgedUnit, run_id: str, number: int) -> UnitRows:
    """The rows of a unit, which is *number* of its run."""
    if isinstance(published, UnjudgedUnit):
        not_audited = published.not_audited
        unit = StoredUnit(
            run_id=run_id,
            unit=number,
            key=published.key,
            window=published.window,
            flows=tuple(StoredFlow(flow, None) for flow in published.key.flows),
            not_audited=replace(not_audited, detail=_storable(not_audited.detail)),
        )
        return UnitRows(_unit_row(unit, {}), _flow_rows(unit), [], [], [], [])
    outcome = canonical(published.outcome)
    scope, partitions = outcome.scope, outcome.partitions
    unit = StoredUnit(
        run_id=run_id,
        unit=number,
        key=published.key,
        window=scope.window,
        flows=tuple(StoredFlow(each.flow, each.source_topic) for each in scope.flows),
        not_audited=None,
        comparison=scope.comparison,
        target_time=scope.target_time,
        keyed=scope.identity.hmac_key is not None,
        counts=outcome.counts,
        copied_again=outcome.copied_again,
        source_bytes=sum(each.source_bytes for each in partitions),
        without_bracket=sum(each.without_bracket for each in partitions),
        end_to_end=merge_latencies(each.end_to_end for each in partitions),
        transfer=merge_latencies(each.transfer for each in partitions),
        affinity=outcome.affinity,
        oldest_open=outcome.oldest_open,
        order_judged=outcome.order_judged,
        bounds=published.bounds,
    )
    return UnitRows(
        unit=_unit_row(unit, encode_scope(scope)),
        flows=_flow_rows(unit),
        partitions=[
            to_row(each, without=("flow",)) | {"flow": _flow_number(each.flow)}
            for each in partitions
        ],
        evidence=_numbered(outcome.evidence),
        replays=_numbered(outcome.replays),
        directories=_numbered(published.directories),
    )


def unit_from_rows(rows: Sequence[Mapping[Any, Any]]) -> StoredUnit:
    """The summary of a unit from its row joined with each of the ordered rows of its flows."""
    unit = rows[0]
    flows = tuple(StoredFlow(Flow.parse(each["label"]), each["source_topic"]) for each in rows)
    not_audited = None
    if not unit["judged"]:
        reason = NotAuditedReason(unit["reason"])
        not_audited = NotAudited(unit["target_topic"], reason, unit["detail"])
    return from_row(
        StoredUnit,
        unit,
        key=UnitKey.named(unit["target_topic"], tuple(each.flow for each in flows)),
        flows=flows,
        not_audited=not_audited,
    )


def run_row(run: Run) -> Row:
    """The row of a run."""
    line = run.verdict_line
    return to_row(run) | {"verdict_line": None if line is None else _storable(line)}


def key_row(key: UnitKey, window: Window) -> Row:
    """The columns by which a unit replaces an earlier one."""
    return {
        "target_cluster": key.target_cluster,
        "target_topic": key.target_topic,
        "flow_set": key.flow_set,
        **to_row(window),
    }


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
        evidence=tuple(
            sorted(
                outcome.evidence,
                key=attrgetter("verdict.value", "side.value", "flow", "partition", "offset"),
            )
        ),
    )


def _unit_row(unit: StoredUnit, scope: Form) -> Row:
    not_audited = unit.not_audited
    return {
        **key_row(unit.key, unit.window),
        **to_row(unit, without=NOT_IN_UNIT_ROW),
        "judged": not_audited is None,
        "reason": None if not_audited is None else not_audited.reason.value,
        "detail": None if not_audited is None else not_audited.detail,
        "scope": scope,
    }


def _flow_rows(unit: StoredUnit) -> list[Row]:
    return [
        {"flow": number, "label": each.flow.label, "source_topic": each.source_topic}
        for number, each in enumerate(unit.flows)
    ]


def _numbered(values: Iterable[Any]) -> list[Row]:
    return [{"number": number, **to_row(each)} for number, each in enumerate(values)]


def _flow_number(flow: int | None) -> int:
    return NO_FLOW if flow is None else flow


def _storable(text: str) -> str:
    """Without NUL, which PostgreSQL cannot store in text."""
    return text.replace("\x00", "")


def dumps(form: Form) -> str:
    """The canonical text of *form*."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)


def encode_scope(scope: UnitScope) -> Form:
    """A scope without its HMAC key; partitions as lists."""
    identity = scope.identity
    return _by_name(scope) | {
        "flows": [
            _by_name(each)
            | {"flow": each.flow.label, "partitions": _listed(each.partitions, _SOURCE)}
            for each in scope.flows
        ],
        "partitions": _listed(scope.partitions, _TARGET),
        "window": [scope.window.start, scope.window.end],
        # By hand, not by field: the HMAC key must never reach the store, where it would allow to
        # guess payloads from the fingerprints of the evidence.
        "identity": {
            "covers": [part for part in _COVERED if getattr(identity, part)],
            "ignored_headers": sorted(identity.ignored_headers),
            "must_change": list(identity.must_change),
        },
        "earlier": [encode_scope(each) for each in scope.earlier],
    }


def decode_scope(form: Form) -> UnitScope:
    """Decode `encode_scope`; the identity without its HMAC key."""
    identity = form["identity"]
    scope: UnitScope = _adapter(UnitScope).validate_python(
        form
        | {
            "flows": [
                each
                | {
                    "flow": Flow.parse(each["flow"]),
                    "partitions": _unlisted(each["partitions"], _SOURCE),
                }
                for each in form["flows"]
            ],
            "partitions": _unlisted(form["partitions"], _TARGET),
            "window": Window(*form["window"]),
            "identity": {part: part in identity["covers"] for part in _COVERED}
            | {name: identity[name] for name in ("ignored_headers", "must_change")},
            "earlier": [decode_scope(each) for each in form["earlier"]],
        }
    )
    return scope


_COVERED: Final = ("key", "value", "headers", "timestamp")
_SOURCE: Final = tuple(each.name for each in fields(SourcePartition) if each.name != "cuts")
_TARGET: Final = tuple(each.name for each in fields(TargetPartition))


def _by_name(value: Any) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _listed(
    partitions: Iterable[SourcePartition | TargetPartition], names: tuple[str, ...]
) -> list[list[int | None]]:
    """Lists instead of objects: a unit can have thousands of partitions."""
    ordered = sorted(partitions, key=lambda each: each.partition)
    return [[getattr(each, name) for name in names] for each in ordered]


def _unlisted(rows: Iterable[Form], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [dict(zip(names, each, strict=True)) for each in rows]


def _encode_latency(latency: LatencyCells) -> Form:
    """A histogram: its cells as [lower bucket or null, upper bucket, records]."""
    # Keys of JSON objects are texts, so pairs of buckets cannot be keys.
    cells = ((lower, upper, n) for (lower, upper), n in latency.cells.items() if n)
    known_last = sorted(cells, key=lambda cell: (cell[0] is not None, cell[0] or 0, cell[1]))
    return _by_name(latency) | {"cells": known_last}


def _decode_latency(form: Form) -> LatencyCells:
    cells = {(lower, upper): n for lower, upper, n in form["cells"]}
    return LatencyCells(**(form | {"cells": cells}))


def _encode_counts(counts: Mapping[Verdict, int]) -> Form:
    return {verdict.value: count for verdict, count in counts.items() if count}


def _encode_lists(values: Iterable[Any]) -> Form:
    """Each value as the list of its fields."""
    return [list(_by_name(each).values()) for each in values]


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


_CODECS: Final[Mapping[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    Flow: (attrgetter("label"), Flow.parse),
    tuple[Flow, ...]: (
        lambda flows: sorted({flow.label for flow in flows}),
        lambda labels: tuple(map(Flow.parse, labels)),
    ),
    Mapping[Verdict, int]: (_encode_counts, _adapter(Mapping[Verdict, int]).validate_python),
    LatencyCells: (_encode_latency, _decode_latency),
    tuple[KeyCell, ...]: (
        lambda cells: _encode_lists(sorted(cells)),
        lambda form: tuple(KeyCell(*each) for each in form),
    ),
    tuple[StatedBound, ...]: (
        _encode_lists,
        lambda form: tuple(StatedBound(*each) for each in form),
    ),
}
"""How values are written and read whose stored form is not that of pydantic."""


@cache
def _codec(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    if kind in _CODECS:
        return _CODECS[kind]
    adapter = _adapter(kind)
    return partial(adapter.dump_python, mode="json"), adapter.validate_python
