"""What has to be counted before objectives can be judged: one question for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import WINDOW_SECONDS
from mm2slo_core.objectives.exclusion import Span, excluded_from_reports
from mm2slo_core.reporting.history import MINUTE_MS, Indicator, whole_minute
from mm2slo_core.reporting.periods import before, rolling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from mm2slo_core.objectives import Objective
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.reporting.entry import ReportWindow
    from mm2slo_core.topology import Flow

HOUR: Final = 3_600.0


@dataclass(frozen=True, kw_only=True)
class Question:
    """Objectives at the instant `as_of` (epoch ms), over `window` or each one's own."""

    objectives: tuple[Objective, ...]
    as_of: int
    zone: tzinfo
    window: ReportWindow | None = None
    exclusions: tuple[Exclusion, ...] = ()

    @property
    def indicators(self) -> tuple[Indicator, ...]:
        """What the objectives are about, each once."""
        return tuple(dict.fromkeys(Indicator(each.flow, each.key) for each in self.objectives))

    @property
    def now(self) -> int:
        """Where the burn windows end: the instant, or the end of a period that is over."""
        return whole_minute(self.as_of) if self.window is None else self.window.end

    def window_of(self, objective: Objective) -> ReportWindow:
        """The time that *objective* is reported over."""
        return self.window or self._own[objective.window]

    def spans(self) -> tuple[Span, ...]:
        """Every span whose counts `entries` needs, in order, each once."""
        # Hundreds of objectives are about a few spans: those of a flow and a window are the same.
        different = {
            (each.flow if self.exclusions else None, each.window): each for each in self.objectives
        }
        found = {span for each in different.values() for span in self._spans_of(each)}
        return tuple(sorted(found))

    def excluded(self, objective: Objective, span: Span) -> tuple[Span, ...]:
        """The parts of *span* that planned maintenance of the flow takes out, by whole minutes."""
        planned = self._planned[objective.flow]
        return inside(planned, span) if planned else ()

    def wholes_of(self, objective: Objective) -> Mapping[str, Span]:
        """The window, the one before, and the burn windows, by name."""
        return self._wholes[objective.window]

    @cached_property
    def _planned(self) -> Mapping[Flow, tuple[Span, ...]]:
        """Maintenance of each flow."""
        flows = dict.fromkeys(each.flow for each in self.objectives)
        return {flow: excluded_from_reports(self.exclusions, flow) for flow in flows}

    @cached_property
    def _own(self) -> Mapping[float, ReportWindow]:
        """The objectives' own windows, by their lengths."""
        lengths = dict.fromkeys(each.window for each in self.objectives)
        return {length: rolling(length, self.as_of) for length in lengths}

    @cached_property
    def _wholes(self) -> Mapping[float, Mapping[str, Span]]:
        """By the length of the objective's own window."""
        now = self.now
        burns = {
            name: Span(now - round(seconds * 1000), now) for name, seconds in WINDOW_SECONDS.items()
        }
        windows = {length: self.window or own for length, own in self._own.items()}
        return {
            length: {WINDOW: Span(each.start, each.end), BEFORE: before(each, self.zone), **burns}
            for length, each in windows.items()
        }

    def _spans_of(self, objective: Objective) -> Iterator[Span]:
        for whole in self.wholes_of(objective).values():
            yield whole
            yield from self.excluded(objective, whole)


WINDOW: Final = "window"
BEFORE: Final = "before"


def inside(parts: Iterable[Span], whole: Span) -> tuple[Span, ...]:
    """The *parts* (in order, without overlaps) that lie in *whole*, widened to whole minutes."""
    widened: list[Span] = []
    for each in parts:
        start, end = whole_minute(each.start), whole_minute(each.end + MINUTE_MS - 1)
        start, end = max(start, whole.start), min(end, whole.end)
        if widened:
            start = max(start, widened[-1].end)
        if start < end:
            widened.append(Span(start, end))
    return tuple(widened)


def minutes_of(spans: Sequence[Span]) -> int:
    """How many whole minutes *spans* hold together."""
    return sum((each.end - each.start) // MINUTE_MS for each in spans)
