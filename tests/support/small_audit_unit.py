"""One audit unit with few records, and its verdicts.

Contents and keys are numbers, which are used as fingerprint and key hash.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reference_audit import judge

from mm2slo_core.audit.audit_scope import (
    AuditRecord,
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow

CENSUS = Sample(1.0)

NEXT = 100
"""Position of every source partition, before its end."""


def scope(
    *,
    flows: int = 1,
    source: dict[str, Any] | None = None,
    target: dict[str, Any] | None = None,
    flow: dict[str, Any] | None = None,
    **changes: Any,
) -> UnitScope:
    sources = tuple(
        SourcePartition(p, 0, 0, **{"end": 1_000, "next_offset": NEXT, **(source or {})})
        for p in (0, 1)
    )
    unit = UnitScope(
        index=0,
        target_topic="t",
        flows=tuple(
            FlowScope(Flow(f"s{n}", "t"), "t", sources, **(flow or {})) for n in range(flows)
        ),
        partitions=tuple(
            TargetPartition(p, 0, 0, **{"end": 1_000, **(target or {})}) for p in (0, 1)
        ),
        window=Window(1_000, 2_000),
        identity=Identity(),
        taken_at=2_500,
        max_pending=1_000,
    )
    return replace(unit, **changes)


def src(
    offset: int,
    content: int,
    *,
    key: int | None = None,
    at: int = 1_500,
    partition: int = 0,
    flow: int = 0,
    **more: Any,
) -> AuditRecord:
    return AuditRecord(0, flow, Side.SOURCE, partition, offset, at, content, key, 10, **more)


def dst(
    offset: int,
    content: int,
    *,
    key: int | None = None,
    at: int = 1_500,
    partition: int = 0,
    **more: Any,
) -> AuditRecord:
    return AuditRecord(0, 0, Side.TARGET, partition, offset, at, content, key, 10, **more)


def counts(
    records: Sequence[AuditRecord], unit: UnitScope | None = None, sample: Sample = CENSUS
) -> dict[Verdict, int]:
    return dict(found(records, unit, sample).counts)


def found(
    records: Sequence[AuditRecord], unit: UnitScope | None = None, sample: Sample = CENSUS
) -> UnitOutcome:
    return judge(records, (), unit or scope(), sample)
