"""The state of a flow: exactly one of running, idle, stopped and unknown, with a reason.

A flow is stopped only if records had to arrive, both clusters were readable, and none arrived.
docs/truth-table.md lists the state and the SLIs for each fault.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


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
    """Shortest stall of the partitions with a backlog; 0 if one of them advances."""
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
        """Stall of all partitions with a backlog after which a flow is stopped."""
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
    if evidence.connector_running is False and proof is None:
        return StateReason.CONNECTOR_NOT_RUNNING
    return None


def _within(age: float | None, limit: float) -> bool:
    return age is not None and age < limit


def _reaches(time: float | None, limit: float) -> bool:
    return time is not None and time >= limit
