"""One round of reading for one flow, again and again, in a thread of its own.

A dead cluster costs its own timeout once, then little: the other side's figures keep moving.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mm2slo_exporter.observation import Observation
from mm2slo_exporter.plan import FlowPlan, KeptPartitions
from mm2slo_exporter.threads import end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mm2slo_core.topology import TopicPartition
    from mm2slo_exporter.canary.events import Event
    from mm2slo_exporter.observation import ClusterView, InternalsView, TailProbe
    from mm2slo_exporter.readers.offsets import SideReader

logger = logging.getLogger(__name__)


class FlowSources(Protocol):
    """What others read, as it is now; none of these calls waits."""

    def clusters(self) -> tuple[ClusterView, ClusterView]:
        """Views of source and target."""

    def internals(self) -> InternalsView:
        """What the internal topics say."""

    def probes(self) -> Mapping[TopicPartition, TailProbe]:
        """What was found at positions that did not move."""

    def canary_events(self) -> tuple[Event, ...]:
        """Events since the last call."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The readers of both ends of a flow."""

    source: SideReader
    target: SideReader


def _may_be_seen(view: ClusterView, topics: Iterable[str]) -> bool:
    """Whether the cluster's topics were read, and not each of the flow's is hidden from us."""
    if view.topics_read_at is None:
        return False
    if not view.hidden:
        return True
    existing = {topic for topic in topics if topic in view.topics}
    return not existing or not existing <= view.hidden


class FlowReader:
    """Reads rounds and hands each to *deliver* as an Observation; runs *before* once first."""

    def __init__(  # each argument is one collaborator of the round
        self,
        name: str,
        sides: Sides,
        sources: FlowSources,
        plan: Callable[[ClusterView], FlowPlan],
        deliver: Callable[[Observation], None],
        *,
        every: float,
        before: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sides = sides
        self._sources = sources
        self._plan = plan
        self._deliver = deliver
        self._on_source = KeptPartitions(FlowPlan.source_partitions)
        self._on_target = KeptPartitions(FlowPlan.target_partitions)
        self._every = every
        self._before = before
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"flow-{name}", daemon=True)

    def start(self) -> None:
        """Begin to read; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a request under way is waited for, but not long."""
        self._stopping.set()
        end(self._thread)

    def _run(self) -> None:
        self._before()
        while not self._stopping.is_set():
            started = time.monotonic()
            self._deliver(self.read())
            self._stopping.wait(max(0.0, self._every - (time.monotonic() - started)))

    def read(self) -> Observation:
        """Read one round: internal topics, then target ends, then source ends."""
        source_view, target_view = self._sources.clusters()
        plan = self._plan(source_view)
        internals = self._sources.internals()
        self._sides.target.read(self._on_target.of(plan, target_view.topics))
        self._sides.source.read(self._on_source.of(plan, source_view.topics))
        return Observation(
            at=self._clock(),
            plan=plan,
            source=source_view,
            target=target_view,
            internals=internals,
            source_offsets=self._sides.source.newest,
            target_offsets=self._sides.target.newest,
            source_readable=self._sides.source.readable
            and _may_be_seen(source_view, (pair.source for pair in plan.pairs)),
            target_readable=self._sides.target.readable
            and _may_be_seen(target_view, (pair.target for pair in plan.pairs)),
            probes=self._sources.probes(),
            canary_events=self._sources.canary_events(),
        )
