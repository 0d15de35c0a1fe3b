"""Reads one flow in rounds, in its own thread.

An unreachable cluster delays a round by its full timeout only now and then, so that data of the
other side stays current.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mm2slo_exporter.flow_plan import FlowPlan, PartitionCache
from mm2slo_exporter.observation import Observation
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mm2slo_core.topology import TopicPartition
    from mm2slo_exporter.canary.canary_events import Event
    from mm2slo_exporter.observation import ClusterView, InternalsView, TailProbe
    from mm2slo_exporter.readers.side_reader import SideReader

logger = logging.getLogger(__name__)

_STRETCH = 2
"""Factor of the interval after a round that was not evaluated; three polls make a flow stale."""


class FlowSources(Protocol):
    """The newest results of other readers; none of these methods blocks."""

    def clusters(self) -> tuple[ClusterView, ClusterView]:
        """Views of source and target cluster."""

    def internals(self) -> InternalsView:
        """State from the internal topics."""

    def probes(self) -> Mapping[TopicPartition, TailProbe]:
        """First records at positions that did not advance."""

    def canary_events(self) -> tuple[Event, ...]:
        """Events since the last call."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The readers of both sides of a flow."""

    source: SideReader
    target: SideReader


def _is_visible(view: ClusterView, topics: Iterable[str]) -> bool:
    """Whether the cluster's topics were read and at least one of *topics* is authorized."""
    if view.topics_read_at is None:
        return False
    if not view.hidden:
        return True
    existing = {topic for topic in topics if topic in view.topics}
    return not existing or not existing <= view.hidden


class FlowReader:
    """Passes an Observation per round to *deliver*.

    *deliver* returns whether the preceding round was not evaluated: the next one is then later.
    """

    def __init__(
        self,
        name: str,
        sides: Sides,
        sources: FlowSources,
        plan: Callable[[ClusterView, InternalsView], FlowPlan],
        deliver: Callable[[Observation], bool],
        *,
        every: float,
        on_failure: Callable[[Loop], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sides = sides
        self._sources = sources
        self._plan = plan
        self._deliver = deliver
        self._on_source = PartitionCache(FlowPlan.source_partitions)
        self._on_target = PartitionCache(FlowPlan.target_partitions)
        self._every = every
        self._clock = clock
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = SupervisedThread(Loop.FLOW, name, self._run, self._stopping, on_failure)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; waits briefly for a request in progress."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()

    def read_soon(self) -> None:
        """Read the next round at once: there are other topics."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            started = time.monotonic()
            is_behind = self._deliver(self.read())
            every = self._every * _STRETCH if is_behind else self._every
            # A round that was not evaluated is late in any case.
            pause = self._stopping if is_behind else self._wake
            pause.wait(max(0.0, every - (time.monotonic() - started)))
            self._wake.clear()

    def read(self) -> Observation:
        """Read one round; the order of requests keeps lag from being negative."""
        source_view, target_view = self._sources.clusters()
        internals = self._sources.internals()
        plan = self._plan(source_view, internals)
        self._sides.target.read(self._on_target.get(plan, target_view.topics))
        self._sides.source.read(self._on_source.get(plan, source_view.topics))
        return Observation(
            at=self._clock(),
            plan=plan,
            source=source_view,
            target=target_view,
            internals=internals,
            source_offsets=self._sides.source.newest,
            target_offsets=self._sides.target.newest,
            source_readable=self._sides.source.readable
            and _is_visible(source_view, (pair.source for pair in plan.pairs)),
            target_readable=self._sides.target.readable
            and _is_visible(target_view, (pair.target for pair in plan.pairs)),
            probes=self._sources.probes(),
            canary_events=self._sources.canary_events(),
        )
