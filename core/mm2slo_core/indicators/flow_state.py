"""The state of a flow (running, idle, stopped or unknown), and the detection of stalls.

A flow is stopped only if records had to arrive, both clusters were readable, and none arrived.
docs/truth-table.md lists the state and the SLIs for each fault.

`StallWatch` watches partitions with a known position. `DroppedTail` knows what looks like a stall:
records at the end of a partition that a transform has dropped. `TopicActivityWatch` is for flows
without known positions. Engines other than MirrorMaker 2 provide no offsets to compare: records may
be in other partitions and at other offsets, and the totals of both sides may differ permanently.
What can be detected is that the source's end offsets advance and the target's do not.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple


class FlowStateName(StrEnum):
    """The value is the label `state`."""

    RUNNING = "running"
    """Records are replicated, or a backlog is younger than the grace period."""
    IDLE = "idle"
    """The source has nothing to replicate, and there is no sign of a fault."""
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class StateReason(StrEnum):
    """The reason for a state; the value is the label `reason`."""

    POSITION_ADVANCES = "position_advances"
    CANARIES_ARRIVE = "canaries_arrive"
    HEARTBEATS_ARRIVE = "heartbeats_arrive"
    WITHIN_GRACE_PERIOD = "within_grace_period"
    """A backlog exists, but not long enough to call the flow stopped."""
    NOTHING_TO_COPY = "nothing_to_copy"
    CANARIES_SILENT = "canaries_silent"
    BACKLOG_STALLED = "backlog_stalled"
    CONNECTOR_NOT_RUNNING = "connector_not_running"
    """MM2's status topic reports paused, stopped or failed."""
    NOT_EVALUATED = "not_evaluated"
    """The exporter has not evaluated the flow recently: a bug, or too little CPU."""
    NOT_READY = "not_ready"
    """MM2's internal topics have not been read to their end yet."""
    EVIDENCE_PENDING = "evidence_pending"
    """Observed too briefly: after a start or an outage, nothing has arrived yet."""
    NO_POSITION = "no_position"
    """Both clusters respond, but the lag of no partition is known."""
    SOURCE_UNREADABLE = "source_unreadable"
    TARGET_UNREADABLE = "target_unreadable"


@dataclass(frozen=True, slots=True)
class FlowEvidence:
    """What is known about a flow at one time. Ages and durations in seconds.

    None means not known or not monitored, and is no evidence for or against the flow.
    """

    ready: bool
    source_readable: bool
    target_readable: bool
    backlog: bool | None
    """The source has unreplicated records that MM2 can read: without open transactions,
    transaction markers and compacted offsets."""
    progress_age: float | None
    """Time since the position of any data partition advanced."""
    stalled_for: float | None
    """Longest stall of the partitions with a backlog."""
    source_moving: bool | None
    """A source end offset advanced within the backlog timeout."""
    canary_silence: float | None = None
    """Time without an arrival while canaries are pending; see CanaryLedger.silence."""
    canary_arrival_age: float | None = None
    heartbeat_age: float | None = None
    observed_for: float = math.inf
    """Time since the exporter started, or the clusters became readable again after an outage."""
    connector_running: bool | None = None
    """False if MM2's status reports the source connector, or all of its tasks, as not running."""


@dataclass(frozen=True, slots=True)
class StateTimeouts:
    """How long nothing may arrive before a flow is stopped. Seconds."""

    stall_after: float = 30.0
    canary_deadline: float = 60.0
    heartbeat_age: float = 30.0
    position_period: float = 0.0
    """Longest time between updates of a healthy position: MM2's flush interval if only committed
    offsets are known."""

    @property
    def canaries(self) -> float:
        """Time without canary arrivals after which a flow is stopped."""
        return min(30.0, self.canary_deadline)

    @property
    def backlog(self) -> float:
        """Stall of a partition after which a flow is stopped, if none has advanced within it."""
        # Connect commits source offsets every `offset.flush.interval.ms`, 60 s by default: between
        # two commits, a position that is known by them alone does not advance, whatever is copied.
        return self.stall_after + self.position_period

    @property
    def decision(self) -> float:
        """Time after which a flow without any sign of replication is stopped or idle."""
        return max(self.backlog, self.canaries)


@dataclass(frozen=True, slots=True)
class FlowState:
    name: FlowStateName
    reason: StateReason


def flow_state(evidence: FlowEvidence, timeouts: StateTimeouts) -> FlowState:
    """Derive the state of a flow.

    Checked in this order: unobservable, stopped, observed too briefly, running, idle. A stalled
    backlog outweighs arriving canaries, which another task may replicate; advancing data outweighs
    missing canaries.
    """
    proof = _running_reason(evidence, timeouts)
    unknown = _unknown_reason(evidence)
    if unknown is not None:
        if unknown in _SOURCE_UNOBSERVABLE and proof is not None:
            # The exporter cannot read the source or its data, but MM2 can: its records arrive.
            return FlowState(FlowStateName.RUNNING, proof)
        return FlowState(FlowStateName.UNKNOWN, unknown)
    stopped = _stopped_reason(evidence, timeouts, proof)
    if stopped is not None:
        return FlowState(FlowStateName.STOPPED, stopped)
    if proof is None and evidence.observed_for < timeouts.decision:
        return FlowState(FlowStateName.UNKNOWN, StateReason.EVIDENCE_PENDING)
    if evidence.backlog or evidence.source_moving:
        return FlowState(FlowStateName.RUNNING, proof or StateReason.WITHIN_GRACE_PERIOD)
    return FlowState(FlowStateName.IDLE, proof or StateReason.NOTHING_TO_COPY)


_SOURCE_UNOBSERVABLE = frozenset({StateReason.SOURCE_UNREADABLE, StateReason.NO_POSITION})


def _unknown_reason(evidence: FlowEvidence) -> StateReason | None:
    # The target first: whatever arrives, arrives there, so without it nothing proves or disproves.
    if not evidence.target_readable:
        return StateReason.TARGET_UNREADABLE
    if not evidence.ready:
        return StateReason.NOT_READY
    if not evidence.source_readable:
        return StateReason.SOURCE_UNREADABLE
    if evidence.backlog is None:
        return StateReason.NO_POSITION
    return None


def _running_reason(evidence: FlowEvidence, timeouts: StateTimeouts) -> StateReason | None:
    """Return the evidence that records arrive, if the target is readable."""
    if not evidence.target_readable:
        return None
    if _within(evidence.progress_age, timeouts.backlog):
        return StateReason.POSITION_ADVANCES
    if _within(evidence.canary_arrival_age, timeouts.canaries):
        return StateReason.CANARIES_ARRIVE
    if _within(evidence.heartbeat_age, timeouts.heartbeat_age):
        return StateReason.HEARTBEATS_ARRIVE
    return None


def _stopped_reason(
    evidence: FlowEvidence, timeouts: StateTimeouts, proof: StateReason | None
) -> StateReason | None:
    if proof is StateReason.POSITION_ADVANCES:
        return None
    if evidence.backlog and _reaches(evidence.stalled_for, timeouts.backlog):
        return StateReason.BACKLOG_STALLED
    if _reaches(evidence.canary_silence, timeouts.canaries):
        return StateReason.CANARIES_SILENT
    # Last, and only without arrivals: a status is what some worker wrote last. Connect's topic may
    # still have one of an earlier generation, and a worker that was killed writes none.
    if evidence.connector_running is False and proof is None:
        return StateReason.CONNECTOR_NOT_RUNNING
    return None


def _within(age: float | None, limit: float) -> bool:
    # Not from further ahead either: the clock of the exporter was set back.
    return age is not None and abs(age) < limit


def _reaches(time: float | None, limit: float) -> bool:
    return time is not None and time >= limit


class PartitionProgress(StrEnum):
    MOVING = "moving"
    """A backlog exists, and the position advanced within the stall time."""
    IDLE = "idle"
    """No backlog."""
    STALLED = "stalled"
    """A backlog exists, and the position has not advanced for the stall time."""
    UNKNOWN = "unknown"
    """The lag is unknown."""


# Until Python 3.12, each access to a member of an enum takes as long as a call.
_IDLE: Final = PartitionProgress.IDLE
_MOVING: Final = PartitionProgress.MOVING


class StallWatch:
    """Tracks the progress of one partition over successive samples.

    A stall is timed from the start of the backlog or the last change of the position, whichever is
    later. Missing samples neither start nor stop it: a position that is the same before and after
    a gap did not advance in between.
    """

    __slots__ = ("_next_offset", "backlog_since", "progress_at")

    def __init__(self) -> None:
        self._next_offset: int | None = None
        self.backlog_since: float | None = None
        """Time since which a backlog exists and the position has not changed; None without one."""
        self.progress_at: float | None = None
        """Time of the last advance of the position, or of the last sample without backlog."""

    def observe(
        self,
        at: float,
        lag_records: int | None,
        next_offset: int | None,
        stall_after: float,
        position_period: float = 0.0,
    ) -> PartitionProgress:
        """Add the sample of time *at*.

        *position_period* is the longest time between updates of a healthy position: 0 for a live
        one, MM2's flush interval if only committed offsets are known.
        """
        if lag_records is None or next_offset is None:
            return PartitionProgress.UNKNOWN
        before, self._next_offset = self._next_offset, next_offset
        if lag_records == 0:
            self.progress_at, self.backlog_since = at, None
            return _IDLE
        if before is not None and next_offset > before:
            self.progress_at = at
        # A task that restarts goes back to its last commit. That is a change as well: it copies
        # again.
        if before != next_offset or self.backlog_since is None:
            self.backlog_since = at
        unchanged_for = at - self.backlog_since
        is_stalled = unchanged_for >= stall_after + position_period
        return PartitionProgress.STALLED if is_stalled else _MOVING


_COMMITS: Final = 2

_SPACING: Final = 0.9
"""Of the commit interval: tasks commit at different times, which must not count as two."""


class TaskCommits(NamedTuple):
    """Times of the newest commits of offsets; None before the first."""

    own: float | None
    """Of the task of a partition."""
    any: float | None
    """Of all tasks of the connector."""


class DroppedTail:
    """Whether a transform has dropped the records between a position and the partition's end.

    Connect commits a dropped record only with a later one that it keeps, so dropped records at the
    end stay uncommitted. The evidence is that the connector commits other offsets twice, while here
    nothing arrives and nothing is replicated. If more records arrive later, only commits of the
    partition's own task count: a task that hangs commits nothing.
    """

    __slots__ = ("_commits", "_counts", "_end", "_grown_at", "_next_offset", "_since")

    def __init__(self) -> None:
        self._next_offset: int | None = None
        self._end: int | None = None
        self._since = self._grown_at = 0.0
        self._commits: list[float | None] = []
        self._counts = [0, 0]

    def observe(
        self,
        at: float,
        next_offset: int,
        end: int,
        commits: TaskCommits,
        *,
        stall_after: float,
        commit_interval: float,
    ) -> bool:
        """Add a sample with a backlog; True if all of it was dropped."""
        if next_offset != self._next_offset or (end != self._end and self._counts[0] >= _COMMITS):
            self._since = at
        if (next_offset, end) != (self._next_offset, self._end):
            self._next_offset, self._end, self._grown_at = next_offset, end, at
            self._commits, self._counts = list(commits), [0, 0]
        for index, committed_at in enumerate(commits):
            before = self._commits[index] or 0.0
            if committed_at is not None and committed_at - before >= _SPACING * commit_interval:
                self._commits[index] = committed_at
                self._counts[index] += 1
        own, of_any = (count >= _COMMITS for count in self._counts)
        return own or (of_any and self._grown_at - self._since < stall_after)

    def is_undecided(self, at: float, stall_after: float, commit_interval: float) -> bool:
        """Whether the backlog rests for *stall_after*, and commits may show that it was dropped.

        Not if records arrived for *stall_after* without progress, or commits do not come.
        """
        rested = at - self._grown_at
        is_waiting = stall_after <= rested < stall_after + _COMMITS * commit_interval
        return is_waiting and self._grown_at - self._since < stall_after


class TopicActivityWatch:
    """Appends to one topic and its copy over successive rounds.

    A producer may write to both sides in any order, so source appends soon after target appends
    prove nothing: a backlog starts with the first source append that comes more than *grace*
    seconds after the last target append.
    """

    __slots__ = (
        "_grace",
        "_source_total",
        "_target_idle_since",
        "_target_total",
        "backlog_since",
        "moved_at",
    )

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._source_total = self._target_total = 0
        self._target_idle_since: float | None = None
        self.moved_at: float | None = None
        """Time of the last target append; None before the first."""
        self.backlog_since: float | None = None
        """Start of the backlog; None without one."""

    def observe(self, at: float, source_total: int, target_total: int) -> None:
        """Add the total records appended to both sides, of a round in which both were read."""
        source_grew = source_total > self._source_total
        target_grew = target_total > self._target_total
        self._source_total, self._target_total = source_total, target_total
        if target_grew:
            self.moved_at = at
        if target_grew or self._target_idle_since is None:
            self._target_idle_since, self.backlog_since = at, None
        elif (
            self.backlog_since is None
            and source_grew
            and at - self._target_idle_since > self._grace
        ):
            self.backlog_since = at
