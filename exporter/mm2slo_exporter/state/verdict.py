"""The state of a flow, from what its partitions, canaries, heartbeats and tasks show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.flow_state import FlowEvidence, FlowState, Patience, flow_state
from mm2slo_core.offsets import PositionQuality
from mm2slo_core.records import ConnectState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.config.flow import FlowConfig
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.model import HeartbeatState, TopicState

_AT_WORK = frozenset({ConnectState.RUNNING, ConnectState.RESTARTING})


@dataclass(frozen=True, slots=True)
class Signs:
    """What the rest of the state knows that bears on the verdict."""

    canary_silence: float | None
    canary_arrived_at: float | None
    heartbeats: HeartbeatState


class Judge:
    """Remembers when the flow's data last moved."""

    def __init__(self, flow: FlowConfig) -> None:
        self._flow = flow
        self._source_total = 0
        self._replicated_total = 0
        self._source_moved_at: float | None = None
        self._progressed_at: float | None = None

    def judge(self, seen: Observation, topics: Sequence[TopicState], signs: Signs) -> FlowState:
        """Judge one round by the flow's data topics; none while they cannot be told."""
        if topics:
            self._note_movement(seen.at, topics)
        patience = Patience(
            stall_after=self._flow.stall_after,
            canary_deadline=self._flow.canary.deadline,
            position_period=self._position_period(topics),
        )
        evidence = FlowEvidence(
            ready=not seen.internals.waiting_for,
            source_readable=seen.source_readable,
            target_readable=seen.target_readable,
            backlog=self._backlog(topics),
            progress_age=_age(seen.at, self._progressed_at),
            stuck_for=self._stuck_for(seen.at, topics),
            source_moving=_recent(seen.at, self._source_moved_at, patience.backlog),
            canary_silence=signs.canary_silence,
            canary_arrival_age=_age(seen.at, signs.canary_arrived_at),
            heartbeat_age=signs.heartbeats.age_seconds,
            connector_running=connector_running(
                seen.internals.states, self._flow.connect.source_connector
            ),
        )
        return flow_state(evidence, patience)

    def _note_movement(self, at: float, topics: Sequence[TopicState]) -> None:
        source = sum(topic.source_records_total for topic in topics)
        replicated = sum(topic.replicated_records_total for topic in topics)
        if source > self._source_total:
            self._source_moved_at = at
        if replicated > self._replicated_total:
            self._progressed_at = at
        self._source_total, self._replicated_total = source, replicated
        if not self._flow.by_mirrormaker:
            moved = (topic.target_moved_at for topic in topics)
            self._progressed_at = max((at for at in moved if at is not None), default=None)

    def _position_period(self, topics: Sequence[TopicState]) -> float:
        """MM2's flush interval, where a waiting partition's position is only known from commits."""
        by_commit = any(
            partition.lag_records and partition.quality is not PositionQuality.LIVE
            for topic in topics
            for partition in topic.partitions
        )
        return self._flow.offset_flush_interval if by_commit else 0.0

    def _backlog(self, topics: Sequence[TopicState]) -> bool | None:
        if not self._flow.by_mirrormaker:
            return bool(_standing(topics))
        return _backlog(topics)

    def _stuck_for(self, at: float, topics: Sequence[TopicState]) -> float | None:
        if not self._flow.by_mirrormaker:
            return min((at - since for since in _standing(topics)), default=None)
        waiting = [
            at - partition.waits_since
            for topic in topics
            for partition in topic.partitions
            if partition.lag_records and partition.waits_since is not None
        ]
        return min(waiting, default=None)


def connector_running(states: Mapping[tuple[str, int | None], str], connector: str) -> bool | None:
    """False when the connector or each of its tasks is not at work; None when none is known."""
    own = states.get((connector, None))
    tasks = [
        state for (name, task), state in states.items() if name == connector and task is not None
    ]
    if own is None and not tasks:
        return None
    if own is not None and own not in _AT_WORK:
        return False
    return not tasks or any(state in _AT_WORK for state in tasks)


def all_tasks_running(
    states: Mapping[tuple[str, int | None], str], connectors: Sequence[str]
) -> bool | None:
    """Whether every task of *connectors* works; None when no task is known."""
    found = [state for (name, _task), state in states.items() if name in connectors]
    return all(state in _AT_WORK for state in found) if found else None


def _backlog(topics: Sequence[TopicState]) -> bool | None:
    """Whether records wait; None when no partition's lag can be told."""
    lags = [partition.lag_records for topic in topics for partition in topic.partitions]
    if not lags:
        return False
    known = [lag for lag in lags if lag is not None]
    return any(known) if known else None


def _standing(topics: Sequence[TopicState]) -> list[float]:
    """Since when topics move and their copies do not; told where positions are not."""
    return [topic.waits_since for topic in topics if topic.waits_since is not None]


def _age(at: float, moment: float | None) -> float | None:
    return None if moment is None else at - moment


def _recent(at: float, moment: float | None, within: float) -> bool:
    return moment is not None and at - moment <= within
