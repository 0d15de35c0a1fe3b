"""Tracks the topics of a flow over time; judges only those of which something has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_exporter.state.changed_topics import ChangedTopics
from mm2slo_exporter.state.flow_totals import TotalsTracker
from mm2slo_exporter.state.topic_tracker import TopicTracker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from mm2slo_core.state_record import TopicLosses
    from mm2slo_core.timeline_record import WatermarkRecord
    from mm2slo_core.topic_drift import SyncedSettings
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.flow_report import TopicState
    from mm2slo_exporter.state.partition_reading import FlowRules

_DELETED_TOPIC_SECONDS = 3600.0
"""A topic that reappears within this time after its deletion counts as re-created."""


class FlowTopics:
    """The topics of one flow, and the sums of their counters."""

    def __init__(self, previous: FlowTopics | None = None) -> None:
        """Continues from the state of *previous*, before a reload."""
        self.totals: TotalsTracker = previous.totals if previous else TotalsTracker()
        self.unchanged: AbstractSet[str] = frozenset()
        """Source topics whose state is that of the round before."""
        self._trackers: dict[str, TopicTracker] = previous._trackers if previous else {}
        self._absent_since: dict[str, float] = previous._absent_since if previous else {}
        self._changes = ChangedTopics()

    def add_history(self, history: Mapping[str, Sequence[WatermarkRecord]]) -> None:
        """Add polls of an earlier process by source topic, newest first."""
        for topic, records in history.items():
            if (tracker := self._trackers.get(topic)) is not None:
                tracker.add_history(records)

    def lacking_arrivals(self, states: Iterable[TopicState]) -> set[str]:
        """Source topics whose unreplicated records may have arrived before the polls added."""
        return {
            each.pair.source
            for each in states
            if not each.at_rest and self._trackers[each.pair.source].lacks_arrivals(each)
        }

    def unsaved_losses(self) -> dict[str, TopicLosses]:
        """The losses of the topics whose state record is behind, by source topic."""
        return {
            name: tracker.losses()
            for name, tracker in self._trackers.items()
            if tracker.needs_saving
        }

    def judge(
        self,
        seen: Observation,
        rules: FlowRules,
        settings: SyncedSettings,
        replicated_at: float | None,
    ) -> tuple[TopicState, ...]:
        """Judge one round. *replicated_at*: when the flow last replicated anything."""
        if seen.source_readable:
            self._forget_deleted({pair.source for pair in seen.plan.pairs}, seen.at)
        changed = self._changes.since_last(seen)
        topics, unchanged = [], set()
        for pair in seen.plan.pairs:
            tracker, state = self._trackers.get(pair.source), None
            if tracker is None:
                tracker = self._trackers[pair.source] = TopicTracker()
            if changed is not None and pair.source not in changed:
                state = tracker.repeat(seen, rules)
            if state is None:
                state = tracker.judge(seen, pair, rules, settings, replicated_at)
            else:
                unchanged.add(pair.source)
            topics.append(state)
        self._changes.remember(seen)
        self.unchanged = unchanged
        return tuple(topics)

    def judge_all_next(self) -> None:
        """Judge all topics in the next round: any may differ from the last one."""
        self._changes.forget()
        self.unchanged = frozenset()

    def restart(self) -> None:
        """Track all topics from the start; their totals continue."""
        self._trackers, self._absent_since = {}, {}
        self.totals.forget_topics()

    def _forget_deleted(self, wanted: set[str], at: float) -> None:
        """Drop trackers of topics that were deleted an hour ago."""
        for name in self._absent_since.keys() & wanted:
            del self._absent_since[name]
        for name in self._trackers.keys() - wanted:
            if at - self._absent_since.setdefault(name, at) > _DELETED_TOPIC_SECONDS:
                del self._trackers[name], self._absent_since[name]
                self.totals.forget(name)
