"""Is a flow running, idle, stopped, or do we not know? Exactly one, with its reason.

Stopped is only said on evidence that was gathered with open eyes: something had to arrive or to
move, both clusters could be read, and it did not. docs/truth-table.md lists fault by fault what
this module and the indicators say.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FlowStateName(StrEnum):
    """The states; the value is the label `state`."""

    RUNNING = "running"
    """Data waits or flows, and replication works."""
    IDLE = "idle"
    """The source has nothing to copy, and nothing speaks against the flow."""
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class StateReason(StrEnum):
    """Why a flow is said to be in its state."""

    POSITION_ADVANCES = "position_advances"
    CANARIES_ARRIVE = "canaries_arrive"
    HEARTBEATS_ARRIVE = "heartbeats_arrive"
    WITHIN_GRACE_PERIOD = "within_grace_period"
    """Something waits, but not yet for long enough to say more."""
    NOTHING_TO_COPY = "nothing_to_copy"
    CANARIES_SILENT = "canaries_silent"
    BACKLOG_STALLED = "backlog_stalled"
    CONNECTOR_NOT_RUNNING = "connector_not_running"
    """MM2's own status topic says paused, stopped or failed."""
    NOT_READY = "not_ready"
    """MM2's internal topics have not been read to their end yet."""
    NO_POSITION = "no_position"
    """Both clusters answer, but no partition's lag can be told."""
    SOURCE_UNREADABLE = "source_unreadable"
    TARGET_UNREADABLE = "target_unreadable"


@dataclass(frozen=True, slots=True)
class FlowEvidence:
    """What is known about a flow at one moment. Times are in seconds, up to that moment.

    None stands for "not known or not watched", and never counts for or against the flow.
    """

    ready: bool
    source_readable: bool
    target_readable: bool
    backlog: bool | None
    """Records that can be copied wait on the source: not those of open transactions, and not the
    offsets of transaction markers or compacted records."""
    progress_age: float | None
    """Since any data partition's position last advanced."""
    stalled_for: float | None
    """Least time for which the partitions with a backlog have stood still; 0 when one moves."""
    source_moving: bool | None
    """A source end offset advanced within the patience."""
    canary_silence: float | None = None
    """For how long canaries have been out without an arrival; CanaryLedger.silence."""
    canary_arrival_age: float | None = None
    heartbeat_age: float | None = None
    connector_running: bool | None = None
    """False when MM2's status says that its source connector, or every task of it, is not."""


@dataclass(frozen=True, slots=True)
class StateTimeouts:
    """How long silence may last. Seconds."""

    stall_after: float = 30.0
    canary_deadline: float = 60.0
    heartbeat_age: float = 30.0
    position_period: float = 0.0
    """Longest healthy standstill of the position: MM2's flush interval where only committed
    offsets are known."""

    @property
    def canaries(self) -> float:
        """After so much canary silence a flow is stopped."""
        return min(30.0, self.canary_deadline)

    @property
    def backlog(self) -> float:
        """After so long a standstill of every waiting partition a flow is stopped."""
        return self.stall_after + self.position_period


@dataclass(frozen=True, slots=True)
class FlowState:
    """The verdict."""

    name: FlowStateName
    reason: StateReason


def flow_state(evidence: FlowEvidence, patience: StateTimeouts) -> FlowState:
    """Judge a flow.

    Order of the questions: what we cannot see, what should have moved and did not, what waits or
    moves, and only then idleness. A backlog that stands still outweighs arriving canaries, which
    may travel in another task; data that moves outweighs silent canaries.
    """
    proof = _proof(evidence, patience)
    blind = _blindness(evidence)
    if blind is not None:
        if blind in _SOURCE_UNSEEN and proof is not None:
            # We cannot read the source, or the data on it; MM2 can: its records arrive.
            return FlowState(FlowStateName.RUNNING, proof)
        return FlowState(FlowStateName.UNKNOWN, blind)
    stopped = _stopped(evidence, patience, proof)
    if stopped is not None:
        return FlowState(FlowStateName.STOPPED, stopped)
    if evidence.backlog or evidence.source_moving:
        return FlowState(FlowStateName.RUNNING, proof or StateReason.WITHIN_GRACE_PERIOD)
    return FlowState(FlowStateName.IDLE, proof or StateReason.NOTHING_TO_COPY)


_SOURCE_UNSEEN = frozenset({StateReason.SOURCE_UNREADABLE, StateReason.NO_POSITION})


def _blindness(evidence: FlowEvidence) -> StateReason | None:
    if not evidence.target_readable:
        return StateReason.TARGET_UNREADABLE
    if not evidence.ready:
        return StateReason.NOT_READY
    if not evidence.source_readable:
        return StateReason.SOURCE_UNREADABLE
    if evidence.backlog is None:
        return StateReason.NO_POSITION
    return None


def _proof(evidence: FlowEvidence, patience: StateTimeouts) -> StateReason | None:
    """What shows that records arrive right now, as far as the target can be read."""
    if not evidence.target_readable:
        return None
    if _within(evidence.progress_age, patience.backlog):
        return StateReason.POSITION_ADVANCES
    if _within(evidence.canary_arrival_age, patience.canaries):
        return StateReason.CANARIES_ARRIVE
    if _within(evidence.heartbeat_age, patience.heartbeat_age):
        return StateReason.HEARTBEATS_ARRIVE
    return None


def _stopped(
    evidence: FlowEvidence, patience: StateTimeouts, proof: StateReason | None
) -> StateReason | None:
    if proof is StateReason.POSITION_ADVANCES:
        return None
    if evidence.backlog and _reaches(evidence.stalled_for, patience.backlog):
        return StateReason.BACKLOG_STALLED
    if _reaches(evidence.canary_silence, patience.canaries):
        return StateReason.CANARIES_SILENT
    if evidence.connector_running is False and proof is None:
        return StateReason.CONNECTOR_NOT_RUNNING
    return None


def _within(age: float | None, limit: float) -> bool:
    return age is not None and age < limit


def _reaches(time: float | None, limit: float) -> bool:
    return time is not None and time >= limit
