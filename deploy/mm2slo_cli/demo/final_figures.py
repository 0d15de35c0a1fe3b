"""Waits until figures are complete and stable, so that they can be compared exactly."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_cli.demo.demo_environment import DemoEnvironment
    from mm2slo_cli.demo.demo_figures import DemoFigures

DEADLINE = 90.0
_POLL = 0.25
_STEADY = 3.0
"""Seconds without a change after which figures are stable: the lab writes checkpoints and offset
syncs every second."""


@dataclass(frozen=True, slots=True)
class FinalFigures:
    """The figures, and what they lack to be complete and stable."""

    figures: DemoFigures
    missing: tuple[str, ...]


def wait_for_final_figures(
    environment: DemoEnvironment,
    deadline: float,
    report_step: Callable[[str], None] = lambda _line: None,
) -> FinalFigures:
    """Return the final figures, or those after *deadline* seconds.

    Stops the traffic once all figures are known, then waits until everything is replicated and
    nothing changes. Raises KafkaOperationError when a cluster rejects the last records.
    """
    end = time.monotonic() + deadline
    report_step("waiting for the first figures")
    figures = _wait(environment, end, lambda found: not found.missing)
    if figures.missing:
        return FinalFigures(figures, figures.missing)
    report_step("waiting until everything is replicated")
    stability = StabilityCheck(environment.traffic.finish())
    figures = _wait(
        environment, end, lambda found: not found.missing and stability.is_stable(found)
    )
    if figures.missing:
        return FinalFigures(figures, figures.missing)
    return FinalFigures(
        figures, () if stability.is_stable(figures) else ("the figures are still changing",)
    )


class StabilityCheck:
    """Detects that all *written* records are replicated and the figures no longer change.

    *written* maps (cluster, topic) to the sum of end offsets.
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

    def is_stable(self, figures: DemoFigures) -> bool:
        """Add the newest figures; True once they have not changed for three seconds."""
        now = self._clock()
        snapshot = [(flow.topics, flow.groups) for flow in figures.flows]
        if not self._is_replicated(figures) or snapshot != self._before:
            self._before, self._since = snapshot, now
            return False
        return now - self._since >= _STEADY

    def _is_replicated(self, figures: DemoFigures) -> bool:
        seen = {
            (flow.flow.source, name): topic.source_end
            for flow in figures.flows
            for name, topic in flow.topics.items()
        }
        return all(flow.lag_records == 0 for flow in figures.flows) and all(
            seen.get(place) == end for place, end in self._written.items()
        )


def _wait(
    environment: DemoEnvironment, end: float, is_done: Callable[[DemoFigures], bool]
) -> DemoFigures:
    while True:
        figures = environment.figures()
        if is_done(figures) or time.monotonic() >= end:
            return figures
        time.sleep(_POLL)
