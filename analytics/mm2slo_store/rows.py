"""What the store takes and gives: frozen values, no SQL.

A *unit* is one target topic with all flows that feed it, in one window; within a run it has a
number. All times are epoch ms.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.audit.outcome import AffinityOutcome, Evidence, LatencyCells, UnitOutcome
    from mm2slo_core.audit.scope import (
        Comparison,
        NotAudited,
        TimestampType,
        UnitScope,
        Window,
    )
    from mm2slo_core.audit.verdict import Verdict
    from mm2slo_core.topology import Flow


def new_run_id(now_ms: int) -> str:
    """An id that no other run has; sorts by time and may stand in a path."""
    started = datetime.fromtimestamp(now_ms // 1000, UTC)
    return f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


class RunState(StrEnum):
    """What became of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What is known of a run when it starts."""

    id: str
    flows: tuple[Flow, ...]
    window: Window
    started_at: int
    sample_rate: float
    salt: int
    config_hash: str
    versions: Mapping[str, str] = field(default_factory=dict)
    """Program -> version, as in {"mm2slo": "0.1.0", "spark": "4.0.5"}."""


class RunPlace(NamedTuple):
    """Where a run stands in the list of runs, the newest first."""

    started_at: int
    id: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the store knows it."""

    header: RunHeader
    state: RunState
    finished_at: int | None = None
    exit_code: int | None = None
    verdict_line: str | None = None
    """Of a failed run: why it failed."""
    complete_up_to: int | None = None
    superseded_units: int = 0
    """Units that its verdict line speaks of and a later run has replaced."""


@dataclass(frozen=True, slots=True)
class StatedBound:
    """What a sample says about all: a rate's interval, and the same in words."""

    name: str
    lower: float
    upper: float
    words: str = ""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A directory of Parquet files that a run wrote."""

    path: str
    kind: str = "records"
    rows: int = 0
    size: int = 0
    """Bytes."""


@dataclass(frozen=True, slots=True)
class JudgedUnit:
    """A unit to be published."""

    outcome: UnitOutcome
    bounds: tuple[StatedBound, ...] = ()
    directories: tuple[RunDirectory, ...] = ()
    restarts_completion: bool = False
    """What precedes the window is gone and can never be audited: completion starts anew here."""


@dataclass(frozen=True, slots=True)
class UnjudgedUnit:
    """A unit without a verdict, to be published."""

    not_audited: NotAudited
    flows: tuple[Flow, ...]
    window: Window


@dataclass(frozen=True, slots=True)
class AuditRun:
    """A finished run to be published."""

    header: RunHeader
    finished_at: int
    exit_code: int
    verdict_line: str
    complete_up_to: int | None = None
    judged: tuple[JudgedUnit, ...] = ()
    not_audited: tuple[UnjudgedUnit, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """What publishing left behind."""

    superseded: tuple[str, ...]
    """Paths of run directories that nothing in the store refers to any more: to be deleted."""


@dataclass(frozen=True, slots=True)
class UnitKey:
    """Which target topic, on which cluster, fed by which flows (sorted by label)."""

    target_cluster: str
    target_topic: str
    flows: tuple[Flow, ...]

    @classmethod
    def of(cls, scope: UnitScope) -> UnitKey:
        """The key of what *scope* describes."""
        return cls.named(scope.target_topic, tuple(each.flow for each in scope.flows))

    @classmethod
    def named(cls, target_topic: str, flows: tuple[Flow, ...]) -> UnitKey:
        """The key of a topic and its flows, which all lead to one cluster.

        Raises ValueError when they do not, or when there is none.
        """
        clusters = {flow.target for flow in flows}
        if len(clusters) != 1:
            raise ValueError(
                f"{target_topic}: its flows lead to {len(clusters)} clusters, not to 1"
            )
        unique = sorted(set(flows), key=lambda flow: flow.label)
        return cls(clusters.pop(), target_topic, tuple(unique))

    @property
    def flow_set(self) -> str:
        """The labels of the flows, as the store keeps them."""
        return ",".join(flow.label for flow in self.flows)


@dataclass(frozen=True, slots=True)
class StoredFlow:
    """One flow of a stored unit; its place in `StoredUnit.flows` is what evidence calls `flow`."""

    flow: Flow
    source_topic: str | None
    """None: the unit was not audited."""


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """The summary of a unit: all its partitions together."""

    run_id: str
    unit: int
    key: UnitKey
    window: Window
    flows: tuple[StoredFlow, ...]
    not_audited: NotAudited | None
    """None: it was judged. Otherwise all figures below are empty."""
    counts: Mapping[Verdict, int]
    source_bytes: int
    end_to_end: LatencyCells
    transfer: LatencyCells
    without_bracket: int
    affinity: AffinityOutcome
    bounds: tuple[StatedBound, ...]
    comparison: Comparison
    target_time: TimestampType
    keyed: bool
    """Fingerprints are keyed (HMAC): comparable only between runs that used the same key."""
    oldest_open: int | None
    order_judged: bool


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    """One anomaly and whose it is."""

    run_id: str
    unit: int
    target_topic: str
    flow: Flow
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class OpenRecord:
    """A source record that an earlier run called lost, overdue or late."""

    flow: Flow
    partition: int
    offset: int
    timestamp: int
    fingerprint: int


@dataclass(frozen=True, slots=True)
class Completion:
    """All records of [start, up_to) have been judged and none of them is open."""

    flow: Flow
    target_topic: str
    start: int
    up_to: int
    run_id: str
    """The run that moved it last; it may have been replaced since."""
    updated_at: int
