"""Observations of a flow us->eu, made by hand: set what the clusters hold, then look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mm2slo_core.config.flow import FlowConfig
from mm2slo_core.offsets import SyncRuns
from mm2slo_core.selection import TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.observation import (
    ClusterView,
    InternalsView,
    Observation,
    OffsetsRead,
    Sync,
    TailProbe,
)
from mm2slo_exporter.plan import FlowPlan

if TYPE_CHECKING:
    from mm2slo_core.readiness import OffsetMap
    from mm2slo_exporter.canary.events import Event


def flow_config(**settings: Any) -> FlowConfig:
    """The flow us->eu with MirrorMaker 2's defaults but for *settings*."""
    return FlowConfig.model_validate({"flow": "us->eu", **settings})


@dataclass
class Log:
    """One source partition, its copy, and what MirrorMaker 2 wrote about it; None is not told."""

    start: int | None = 0
    end: int | None = 0
    stable: int | None = None
    target_start: int | None = 0
    target_end: int | None = 0
    committed: int | None = None
    sync: Sync | None = None
    probe: TailProbe | None = None

    def live(self, next_offset: int, end: int) -> None:
        """Let the flow have copied up to *next_offset* of *end*, one for one."""
        self.end = end
        self.sync = Sync(0, 0, 900.0)
        self.target_end = next_offset


@dataclass
class Scene:
    """Both clusters as they are now; `look` takes one round of reading."""

    logs: dict[TopicPartition, Log] = field(default_factory=dict)
    roles: dict[str, TopicRole] = field(default_factory=dict)
    source_readable: bool = True
    target_readable: bool = True
    source: dict[str, Any] = field(default_factory=dict)
    """More fields of the source's ClusterView."""
    target: dict[str, Any] = field(default_factory=dict)
    internals: dict[str, Any] = field(default_factory=dict)
    """More fields of the InternalsView."""
    missing_copies: set[str] = field(default_factory=set)
    _source_read: OffsetsRead | None = None
    _target_read: OffsetsRead | None = None

    def add(self, topic: str, partitions: int = 1, role: TopicRole = TopicRole.DATA) -> Log:
        """Create a topic; gives its first partition."""
        self.roles[topic] = role
        for number in range(partitions):
            self.logs[TopicPartition(topic, number)] = Log()
        return self.logs[TopicPartition(topic, 0)]

    def drop(self, topic: str) -> None:
        """Delete a topic on the source."""
        del self.roles[topic]
        for here in [here for here in self.logs if here.topic == topic]:
            del self.logs[here]

    def look(self, at: float, *events: Event) -> Observation:
        """Read one round; the requests take from 0.2 to 0.1 seconds before *at*."""
        pairs = tuple(TopicPair(name, f"us.{name}", role) for name, role in self.roles.items())
        counts = {name: sum(here.topic == name for here in self.logs) for name in self.roles}
        if self.source_readable:
            self._source_read = self._read(at, self._source_read, copies=False)
        if self.target_readable:
            self._target_read = self._read(at, self._target_read, copies=True)
        copied = {f"us.{n}": c for n, c in counts.items() if n not in self.missing_copies}
        here: dict[str, Any] = {"topics": counts, "topics_read_at": at - 1.0}
        there: dict[str, Any] = {"topics": copied, "topics_read_at": at - 1.0}
        return Observation(
            at=at,
            plan=FlowPlan(pairs),
            source=ClusterView(**here | self.source),
            target=ClusterView(**there | self.target),
            internals=self._internals(),
            source_offsets=self._source_read,
            target_offsets=self._target_read,
            source_readable=self.source_readable,
            target_readable=self.target_readable,
            probes={p: log.probe for p, log in self.logs.items() if log.probe is not None},
            canary_events=events,
        )

    def _internals(self) -> InternalsView:
        syncs = {here: log.sync for here, log in self.logs.items() if log.sync is not None}

        def offset_map(here: TopicPartition) -> OffsetMap | None:
            if here not in syncs:
                return None
            runs = SyncRuns()
            runs.add(syncs[here].upstream, syncs[here].downstream)
            return runs

        committed = {here: log.committed for here, log in self.logs.items()}
        fields: dict[str, Any] = {
            "syncs": syncs,
            "offset_map": offset_map,
            "committed": {here: at for here, at in committed.items() if at is not None},
        }
        return InternalsView(**fields | self.internals)

    def _read(self, at: float, before: OffsetsRead | None, *, copies: bool) -> OffsetsRead:
        ends, starts, stable = {}, {}, {}
        for (topic, number), log in self.logs.items():
            here = TopicPartition(f"us.{topic}" if copies else topic, number)
            end, start = (log.target_end, log.target_start) if copies else (log.end, log.start)
            if copies and topic in self.missing_copies:
                continue
            if end is not None:
                ends[here] = end
            if start is not None:
                starts[here] = start
            if log.stable is not None and not copies:
                stable[here] = log.stable
        return OffsetsRead(
            ends=ends,
            starts=starts,
            stable_ends=stable,
            requested_at=at - 0.2,
            answered_at=at - 0.1,
            previous_requested_at=None if before is None else before.requested_at,
            previous_answered_at=None if before is None else before.answered_at,
        )
