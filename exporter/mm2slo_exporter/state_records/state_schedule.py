"""Selects the state records to write: what differs from the topic, and how soon."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.state_record import (
    RecoveryPoint,
    State,
    StateKey,
    StateKind,
    TopicLosses,
    Verdict,
    encode_state,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.flow_report import FlowReport

UPDATE_INTERVAL_SECONDS = 60.0
"""A group whose verdict is the same is written this often, and a record that was not read back."""


class _Sent(NamedTuple):
    at: float
    held: State | None
    """What the topic held then: another object once a record was read back."""


class StateSchedule:
    """Selects the records of one flow."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow.slug
        self._sent: dict[StateKey, _Sent] = {}

    def reset(self) -> None:
        """Start over: a record was not written, or another process may have written since."""
        self._sent.clear()

    def due(
        self, seen: Observation, report: FlowReport, losses: Mapping[str, TopicLosses]
    ) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values to write for this round; *losses* are those that are not saved yet."""
        held = seen.internals.saved.records
        wanted = dict(self._wanted(seen, report, losses, held))
        for key in self._sent.keys() - wanted.keys():
            del self._sent[key]
        for key, state in wanted.items():
            before = held.get(key)
            if state != before and self._is_due(key, state, before, seen.at):
                self._sent[key] = _Sent(seen.at, before)
                yield key.encode(), None if state is None else encode_state(state)

    def _is_due(self, key: StateKey, state: State | None, held: State | None, at: float) -> bool:
        sent = self._sent.get(key)
        if sent is None or at - sent.at >= UPDATE_INTERVAL_SECONDS:
            return True
        return sent.held is not held and _is_urgent(state, held)

    def _wanted(
        self,
        seen: Observation,
        report: FlowReport,
        losses: Mapping[str, TopicLosses],
        held: Mapping[StateKey, State],
    ) -> Iterator[tuple[StateKey, State | None]]:
        for topic, found in losses.items():
            yield from found.split(self._flow, topic)
        if not report.ready:
            return
        if report.recovery_point is not None:
            yield StateKey(self._flow, StateKind.RECOVERY, ""), report.recovery_point
        for group in report.groups:
            yield self._group(group.group), group.verdict
        if seen.source_readable and seen.source.groups_complete and seen.target.groups_complete:
            yield from self._gone({self._group(group.group) for group in report.groups}, held)

    def _group(self, name: str) -> StateKey:
        return StateKey(self._flow, StateKind.GROUP, name)

    def _gone(
        self, present: set[StateKey], held: Iterable[StateKey]
    ) -> Iterator[tuple[StateKey, None]]:
        for key in held:
            if key.kind is StateKind.GROUP and key not in present:
                yield key, None


def _is_urgent(state: State | None, held: State | None) -> bool:
    match state:
        case TopicLosses() | RecoveryPoint():
            return True
        case Verdict():
            return not state.is_same(held)
    return False
