"""Waits for a whole picture of a lab at rest, so that its figures can be compared exactly."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_cli.demo.figures import DemoFigures
    from mm2slo_cli.demo.stage import Stage

DEADLINE = 90.0
_POLL = 0.25
_STEADY = 3.0
"""Nothing moves any more once it did not for so long: checkpoints and offset syncs of the lab
are written every second."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The figures, and in words what is missing for them to be whole and at rest."""

    figures: DemoFigures
    missing: tuple[str, ...]


def settle(
    stage: Stage, deadline: float, tell: Callable[[str], None] = lambda _line: None
) -> Settled:
    """The figures at rest, or those after *deadline* seconds with what they lack.

    Ends the traffic once every figure is there, then waits until all of it is copied and nothing
    moves. Raises KafkaOperationError when a cluster does not take the last records.
    """
    end = time.monotonic() + deadline
    tell("waiting for the first figures")
    figures = _wait(stage, end, lambda found: not found.missing)
    if figures.missing:
        return Settled(figures, figures.missing)
    tell("waiting until everything is copied")
    rest = Rest(stage.traffic.rest())
    figures = _wait(stage, end, lambda found: not found.missing and rest.reached(found))
    if figures.missing:
        return Settled(figures, figures.missing)
    return Settled(figures, () if rest.reached(figures) else ("the figures still move",))


class Rest:
    """Whether a lab rests: all that was *written* is copied, and nothing has changed for a while.

    *written* are the end offsets by (cluster, topic), over all partitions.
    """

    def __init__(
        self,
        written: Mapping[tuple[str, str], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._written = written
        self._clock = clock
        self._before: object = None
        self._since = clock()

    def reached(self, figures: DemoFigures) -> bool:
        """Take the newest figures; True once they have been the same for three seconds."""
        now = self._clock()
        picture = [(flow.topics, flow.groups) for flow in figures.flows]
        if not self._copied(figures) or picture != self._before:
            self._before, self._since = picture, now
            return False
        return now - self._since >= _STEADY

    def _copied(self, figures: DemoFigures) -> bool:
        seen = {
            (flow.flow.source, name): topic.source_end
            for flow in figures.flows
            for name, topic in flow.topics.items()
        }
        return all(flow.lag_records == 0 for flow in figures.flows) and all(
            seen.get(place) == end for place, end in self._written.items()
        )


def _wait(stage: Stage, end: float, enough: Callable[[DemoFigures], bool]) -> DemoFigures:
    while True:
        figures = stage.figures()
        if enough(figures) or time.monotonic() >= end:
            return figures
        time.sleep(_POLL)
