"""SLIs measured in time slices: data freshness, checkpoint freshness, heartbeat availability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.name_filters import TopicFilter
from mm2slo_core.sli_counters import Sli, SliceClock, SliCounters, SliKey
from mm2slo_core.time_slices import (
    CheckpointFreshness,
    FreshnessClass,
    data_freshness,
    heartbeat_availability,
)
from mm2slo_exporter.state.group_states import group_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_core.sli_counters import SliCount
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.flow_report import HeartbeatState, TopicState

_AVAILABILITY = SliKey(Sli.AVAILABILITY)
_CHECKPOINTS = SliKey(Sli.CHECKPOINT_FRESHNESS)


class FreshnessClasses:
    """Assigns each topic its freshness class: the first that matches."""

    def __init__(self, flow: FlowConfig) -> None:
        self._classes = tuple(
            (FreshnessClass(each.name, each.threshold), TopicFilter(each.topics, ()))
            for each in flow.freshness
        )
        self._known: dict[str, FreshnessClass] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes; values of the label `tier`."""
        return tuple(each.name for each, _filter in self._classes)

    def lags(
        self, topics: Iterable[TopicState], *, known: bool = True
    ) -> Mapping[FreshnessClass, list[float | None]]:
        """Lag in seconds of each partition, by class; None where it is unknown.

        *known* False: the target is unreadable, so that lags are only upper bounds.
        """
        found: dict[FreshnessClass, list[float | None]] = {each: [] for each, _ in self._classes}
        before, self._known = self._known, {}
        for topic in topics:
            name = topic.pair.source
            self._known[name] = before.get(name) or self._of(name)
            lags = found[self._known[name]]
            if not known:
                lags += [None] * len(topic.partitions)
            elif topic.at_rest:
                lags += [topic.partitions[0].lag_seconds] * len(topic.partitions)
            else:
                lags += [each.lag_seconds for each in topic.partitions]
        return found

    def _of(self, topic: str) -> FreshnessClass:
        return next(each for each, names in self._classes if names.matches(topic))


class SliceIndicators:
    """Counts slices of one flow; none for engines other than MirrorMaker 2, without positions."""

    def __init__(
        self,
        flow: FlowConfig,
        *,
        by_heartbeats: bool,
        started_at: float,
        previous: SliceIndicators | None = None,
    ) -> None:
        """Continues the counts of *previous*, before a reload."""
        self._is_measured = flow.by_mirrormaker
        self._classes = FreshnessClasses(flow)
        self._clock = SliceClock(flow.slice, started_at)
        self._checkpoints = CheckpointFreshness(flow.checkpoint_interval)
        self._by_heartbeats = by_heartbeats
        keys = [SliKey(Sli.DATA_FRESHNESS, name) for name in self._classes.names]
        keys.append(_CHECKPOINTS)
        if by_heartbeats:
            keys.append(_AVAILABILITY)
        counted = previous.counts() if previous else None
        self._counters = SliCounters(keys if self._is_measured else (), counted)

    def observe(
        self, seen: Observation, topics: Sequence[TopicState], heartbeats: HeartbeatState
    ) -> None:
        """Count the slices that ended since the last round."""
        slices = self._clock.due(seen.at)
        if not slices.measured or not self._is_measured:
            return
        lags = self._classes.lags(topics, known=seen.target_readable)
        self._counters.add_all(data_freshness(slices, lags))
        copies = {topic.pair.source: topic.pair.target for topic in topics}
        self._counters.add(
            _CHECKPOINTS, self._checkpoints.count(seen.at, slices, copies, group_offsets(seen))
        )
        if self._by_heartbeats:
            source_unreachable_for = 0.0
            if not seen.source_readable and seen.source_offsets is not None:
                source_unreachable_for = seen.at - seen.source_offsets.answered_at
            self._counters.add(
                _AVAILABILITY,
                heartbeat_availability(
                    slices,
                    heartbeats.age_seconds,
                    target_readable=seen.target_readable,
                    source_unreachable_for=source_unreachable_for,
                ),
            )

    @property
    def checkpoint_interval(self) -> float:
        """Seconds between MirrorMaker 2's checkpoints."""
        return self._checkpoints.checkpoint_interval

    @checkpoint_interval.setter
    def checkpoint_interval(self, seconds: float) -> None:
        self._checkpoints.checkpoint_interval = seconds

    def counts(self) -> Mapping[SliKey, SliCount]:
        """Good, total and unknown slices."""
        return self._counters.snapshot()
