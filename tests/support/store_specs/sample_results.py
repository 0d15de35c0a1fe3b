"""Sample outcomes with a value in every field."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
    PartitionOutcome,
    ReplayEvent,
    UnitOutcome,
    Verdict,
)
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import (
    AuditRun,
    JudgedUnit,
    RunDirectory,
    RunHeader,
    StatedBound,
    UnjudgedUnit,
)

US_EU = Flow("us", "eu")
AP_EU = Flow("ap", "eu")
ORDERS = "orders"
LONGEST = (1 << 63) - 1


def evidence(verdict: Verdict, offset: int, **more: Any) -> Evidence:
    """An anomaly in partition 1 of the first flow; its timestamp equals its offset."""
    side = Side.TARGET if verdict in {Verdict.DUPLICATE, Verdict.REPLAY} else Side.SOURCE
    default: dict[str, Any] = {
        "flow": 0,
        "partition": 1,
        "timestamp": offset,
        "fingerprint": -offset - 1,
        "key_hash": None,
    }
    return Evidence(verdict=verdict, side=side, offset=offset, **(default | more))


def orders_outcome(
    window: Window, *, topic: str = ORDERS, found: Sequence[Evidence] = (), **more: Any
) -> UnitOutcome:
    """Fan-in of two flows with a value in every field, plus the anomalies of *found*."""
    scope = UnitScope(
        index=3,
        target_topic=topic,
        flows=(
            FlowScope(
                US_EU,
                "orders",
                (
                    SourcePartition(0, 5, 10, 5_000_000_000, 4_999_999_990, 7, 2),
                    SourcePartition(1, 0, 0, 40, None),
                ),
            ),
            FlowScope(AP_EU, "orders-ap", (), TimestampType.LOG_APPEND, has_positions=False),
        ),
        partitions=(TargetPartition(0, 1, 2, 3, 4), TargetPartition(1, 0, 0, 90)),
        window=window,
        identity=Identity(value=False, ignored_headers=("trace", "span")),
        comparison=Comparison.KEYS,
        target_time=TimestampType.LOG_APPEND,
        taken_at=window.end + 60_000,
        max_pending=120_000,
        tombstones_kept=86_400_000,
    )
    outcome = UnitOutcome(
        scope=scope,
        partitions=(
            PartitionOutcome(
                flow=0,
                partition=1,
                counts={Verdict.MATCHED: 5_000_000_000, Verdict.LOST: 2},
                source_bytes=1 << 40,
                end_to_end=LatencyCells({(None, 40): 3, (0, 1): 7}, 4, 9_000, 8_000),
                transfer=LatencyCells({(0, 0): 10}, 0, 10, 0),
                without_bracket=11,
            ),
            PartitionOutcome(flow=1, partition=0, counts={Verdict.MATCHED: 1}, source_bytes=9),
            PartitionOutcome(flow=None, partition=0, counts={Verdict.EXTRA: 6}),
        ),
        affinity=AffinityOutcome(
            9,
            2,
            1,
            4,
            (-LONGEST - 1, LONGEST),
            (KeyCell(2, 8, 8, 4, 1), KeyCell(7, 5_000_000_000, 4_999_999_999)),
        ),
        copied_again=12,
        replays=(ReplayEvent(0, 20, 30, 10), ReplayEvent(1, 5, 7, 2)),
        evidence=(
            evidence(Verdict.ALTERED, 7, key_hash=-5, other_partition=1, other_offset=70),
            evidence(Verdict.REPLAY, 20, block=20, fingerprint=LONGEST),
            *found,
        ),
    )
    return replace(outcome, **more)


def judged(outcome: UnitOutcome, *paths: str, restarts: bool = False) -> JudgedUnit:
    """*outcome* with a bound and run directories."""
    return JudgedUnit(
        outcome,
        bounds=(StatedBound("loss", 0.0, 3e-4, "loss is 0% (95 %: 0% to 0.03%)"),),
        directories=tuple(RunDirectory(path, "records", 1_000, 1 << 33) for path in paths),
        restarts_completion=restarts,
    )


def unjudged(window: Window, topic: str = ORDERS) -> UnjudgedUnit:
    """A topic that another run holds."""
    reason = NotAudited(topic, NotAuditedReason.LEASED, "held by a run\x00 elsewhere")
    return UnjudgedUnit(reason, (US_EU, AP_EU), window)


def header(run_id: str, window: Window, started_at: int = 1_000) -> RunHeader:
    """A run of both flows."""
    versions = {"spark": "4.0.5", "mm2slo": "0.1.0"}
    return RunHeader(run_id, (AP_EU, US_EU), window, started_at, 0.01, -7, "c0ffee", versions)


def run_of(run_id: str, *units: JudgedUnit | UnjudgedUnit, started_at: int = 1_000) -> AuditRun:
    """A finished run of *units*, whose windows it spans."""
    windows = [
        each.window if isinstance(each, UnjudgedUnit) else each.outcome.scope.window
        for each in units
    ]
    span = Window(min(each.start for each in windows), max(each.end for each in windows))
    return AuditRun(
        header(run_id, span, started_at),
        finished_at=started_at + 500,
        exit_code=1,
        verdict_line="2 lost; complete up to 1970-01-01T00:00:00.100Z",
        complete_up_to=span.end,
        judged=tuple(each for each in units if isinstance(each, JudgedUnit)),
        not_audited=tuple(each for each in units if isinstance(each, UnjudgedUnit)),
    )
