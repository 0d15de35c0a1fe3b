"""Values of audits that are stored and returned, and the span of complete windows; no SQL.

A *unit* is one target topic with all flows that feed it, in one window; within a run it has a
number. All times are epoch ms.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, Self

from mm2slo_core.audit.audit_scope import Comparison, NotAudited, TimestampType, UnitScope, Window
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    Evidence,
    LatencyCells,
    UnitOutcome,
    Verdict,
)
from mm2slo_core.topology import Flow


def new_run_id(now_ms: int) -> str:
    """A unique run id that sorts by time and is valid in a path."""
    started = datetime.fromtimestamp(now_ms // 1000, UTC)
    return f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


class RunState(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The properties of a run that are known at its start."""

    id: str
    flows: tuple[Flow, ...]
    window: Window
    started_at: int
    sample_rate: float
    salt: int
    config_hash: str
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions by program, such as {"mm2slo": "0.1.0", "spark": "4.0.5"}."""


class RunPlace(NamedTuple):
    """The place of a run in the list of runs, newest first."""

    started_at: int
    id: str


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run."""

    header: RunHeader
    state: RunState
    finished_at: int | None = None
    exit_code: int | None = None
    verdict_line: str | None = None
    """For a failed run: why it failed."""
    complete_up_to: int | None = None
    bytes_read: int | None = None
    superseded_units: int = 0
    """Units of its verdict line that later runs have replaced."""


@dataclass(frozen=True, slots=True)
class StatedBound:
    """A confidence interval of a rate over all records, and the same as text."""

    name: str
    lower: float
    upper: float
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A directory of Parquet files that a run wrote."""

    path: str
    kind: str = "records"
    rows: int = 0
    size: int = 0
    """Bytes."""


@dataclass(frozen=True, slots=True)
class UnitKey:
    """A target topic, its cluster, and the flows that replicate to it, sorted by label."""

    target_cluster: str
    target_topic: str
    flows: tuple[Flow, ...]

    @classmethod
    def of(cls, scope: UnitScope) -> Self:
        """The key of *scope*."""
        return cls.named(scope.target_topic, tuple(each.flow for each in scope.flows))

    @classmethod
    def named(cls, target_topic: str, flows: tuple[Flow, ...]) -> Self:
        """The key of a topic and its flows.

        Raises ValueError unless all flows have the same target cluster.
        """
        clusters = {flow.target for flow in flows}
        if len(clusters) != 1:
            raise ValueError(
                f"{target_topic}: its flows have {len(clusters)} target clusters; expected 1"
            )
        unique = sorted(set(flows), key=lambda flow: flow.label)
        return cls(clusters.pop(), target_topic, tuple(unique))

    @property
    def flow_set(self) -> str:
        """The labels of the flows, as stored."""
        return ",".join(flow.label for flow in self.flows)


@dataclass(frozen=True, slots=True)
class JudgedUnit:
    """A unit to be published."""

    outcome: UnitOutcome
    bounds: tuple[StatedBound, ...] = ()
    directories: tuple[RunDirectory, ...] = ()
    restarts_completion: bool = False
    """Earlier records are gone and can never be audited: completion restarts at this window."""

    @property
    def key(self) -> UnitKey:
        """The topic and flows of the unit."""
        return UnitKey.of(self.outcome.scope)

    @property
    def window(self) -> Window:
        """The audited window."""
        return self.outcome.scope.window


@dataclass(frozen=True, slots=True)
class UnjudgedUnit:
    """A unit without a verdict, to be published."""

    not_audited: NotAudited
    flows: tuple[Flow, ...]
    window: Window

    @property
    def key(self) -> UnitKey:
        """The topic and flows of the unit."""
        return UnitKey.named(self.not_audited.target_topic, self.flows)


@dataclass(frozen=True, slots=True)
class AuditRun:
    """A finished run to be published."""

    header: RunHeader
    finished_at: int
    exit_code: int
    verdict_line: str
    complete_up_to: int | None = None
    bytes_read: int = 0
    judged: tuple[JudgedUnit, ...] = ()
    not_audited: tuple[UnjudgedUnit, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing a run."""

    superseded: tuple[str, ...]
    """Paths of run directories that are no longer referenced and can be deleted."""


@dataclass(frozen=True, slots=True)
class StoredFlow:
    """A flow of a stored unit; `Evidence.flow` is its index in `StoredUnit.flows`."""

    flow: Flow
    source_topic: str | None
    """None: the unit was not audited."""


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """The summary of a unit over its partitions."""

    run_id: str
    unit: int
    key: UnitKey
    window: Window
    flows: tuple[StoredFlow, ...]
    not_audited: NotAudited | None
    """None: it was judged. Otherwise all figures below are empty."""
    comparison: Comparison = Comparison.RECORDS
    target_time: TimestampType = TimestampType.CREATE
    keyed: bool = False
    """Fingerprints are keyed (HMAC): comparable only between runs that used the same key."""
    counts: Mapping[Verdict, int] = field(default_factory=dict)
    copied_again: int = 0
    source_bytes: int = 0
    without_bracket: int = 0
    end_to_end: LatencyCells = field(default_factory=LatencyCells)
    transfer: LatencyCells = field(default_factory=LatencyCells)
    affinity: AffinityOutcome = field(default_factory=AffinityOutcome)
    oldest_open: int | None = None
    order_judged: bool = False
    bounds: tuple[StatedBound, ...] = ()
    max_pending: int = 0
    """Age in ms at which an open record was overdue."""


class EvidencePlace(NamedTuple):
    """The place of an anomaly in the list of evidence."""

    window_start: int
    run_id: str
    unit: int
    number: int


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    """An anomaly with its topic and flow."""

    place: EvidencePlace
    target_topic: str
    flow: Flow
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Completion:
    """All records of [start, up_to) are judged, and none is open."""

    flow: Flow
    target_topic: str
    start: int
    up_to: int
    run_id: str
    """The run that changed it last, which may have been replaced since."""
    updated_at: int


@dataclass(frozen=True, slots=True)
class CompletionSpan:
    """Complete in [start, up_to), epoch ms."""

    start: int
    up_to: int


def extend_completion(
    known: CompletionSpan | None, window: Window, reached: int, *, restarts: bool
) -> CompletionSpan:
    """The complete span after *window* was judged and found complete up to *reached*.

    The span has no gaps: a window that is not adjacent changes nothing, because the next run starts
    where the span ends, unless the gap can never be audited (*restarts*). A record that is found
    open later, such as one with an old timestamp, shortens the span.
    """
    if known is None or (restarts and window.start > known.up_to):
        return CompletionSpan(window.start, reached)
    if window.start > known.up_to or window.end < known.start:
        return known
    if reached == window.end:
        return CompletionSpan(min(known.start, window.start), max(known.up_to, window.end))
    if reached < known.start:
        return known
    return CompletionSpan(min(known.start, window.start), reached)


def skip_window(known: CompletionSpan, window: Window, *, gone: bool) -> CompletionSpan:
    """The complete span after *window* was found without records to judge.

    An empty window is complete. If its records are *gone* it can never be audited: the span then
    restarts at its end.
    """
    if not gone:
        return extend_completion(known, window, window.end, restarts=False)
    return CompletionSpan(window.end, window.end) if window.end > known.up_to else known
