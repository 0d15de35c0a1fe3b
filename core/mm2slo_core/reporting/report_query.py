"""The query of a report: objectives, instant and window, and the spans to count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import WINDOW_SECONDS
from mm2slo_core.objectives.exclusion import Span, excluded_from_reports
from mm2slo_core.reporting.report_periods import before, rolling
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, Indicator, whole_minute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from mm2slo_core.objectives import Objective
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.reporting.report_entry import ReportWindow
    from mm2slo_core.topology import Flow

HOUR: Final = 3_600.0


@dataclass(frozen=True, kw_only=True)
class ReportQuery:
    """Objectives as of `as_of` (epoch ms), over `window` or over the window of each objective."""

    objectives: tuple[Objective, ...]
    as_of: int
    zone: tzinfo
    window: ReportWindow | None = None
    exclusions: tuple[Exclusion, ...] = ()

    @property
    def indicators(self) -> tuple[Indicator, ...]:
        """The indicators of the objectives, without duplicates."""
        return tuple(dict.fromkeys(Indicator(each.flow, each.key) for each in self.objectives))

    @property
    def now(self) -> int:
        """The end of the burn windows: the instant, or the end of a past period."""
        return whole_minute(self.as_of) if self.window is None else self.window.end

    @property
    def recent(self) -> Span:
        """The time in which current data has samples."""
        return Span(self.now - _RECENT_MS, self.now)

    def window_of(self, objective: Objective) -> ReportWindow:
        """The window of the report for *objective*."""
        return self.window or self._own_windows[objective.window]

    def spans(self) -> tuple[Span, ...]:
        """All spans whose counts `entries` needs, in order, without duplicates."""
        # Objectives of the same flow and window have the same spans.
        different = {
            (each.flow if self.exclusions else None, each.window): each for each in self.objectives
        }
        found = {span for each in different.values() for span in self._spans_of(each)}
        return tuple(sorted(found))

    def excluded(self, objective: Objective, span: Span) -> tuple[Span, ...]:
        """The parts of *span* that exclusions of the flow remove, in whole steps."""
        excluded = self._excluded_by_flow[objective.flow]
        return clip(excluded, span) if excluded else ()

    def spans_by_name(self, objective: Objective) -> Mapping[str, Span]:
        """The window, the window before and the burn windows, by name."""
        return self._spans_by_window[objective.window]

    @cached_property
    def _excluded_by_flow(self) -> Mapping[Flow, tuple[Span, ...]]:
        """Excluded times by flow."""
        flows = dict.fromkeys(each.flow for each in self.objectives)
        return {flow: excluded_from_reports(self.exclusions, flow) for flow in flows}

    @cached_property
    def _own_windows(self) -> Mapping[float, ReportWindow]:
        """Windows of objectives by length."""
        lengths = dict.fromkeys(each.window for each in self.objectives)
        return {length: rolling(length, self.as_of) for length in lengths}

    @cached_property
    def _spans_by_window(self) -> Mapping[float, Mapping[str, Span]]:
        """Spans by name, by the window length of the objective."""
        now = self.now
        burns = {
            name: Span(now - round(seconds * 1000), now) for name, seconds in WINDOW_SECONDS.items()
        }
        windows = {length: self.window or own for length, own in self._own_windows.items()}
        return {
            length: {
                WINDOW: Span(each.start, each.end),
                BEFORE: before(each, self.zone),
                RECENT: self.recent,
                **burns,
            }
            for length, each in windows.items()
        }

    def _spans_of(self, objective: Objective) -> Iterator[Span]:
        for whole in self.spans_by_name(objective).values():
            yield whole
            yield from self.excluded(objective, whole)


WINDOW: Final = "window"
BEFORE: Final = "before"
RECENT: Final = "recent"
_RECENT_MS: Final = 15 * MINUTE_MS
"""Two steps of five minutes, and a late evaluation."""


def clip(parts: Iterable[Span], whole: Span) -> tuple[Span, ...]:
    """The *parts* (in order, without overlaps) within *whole*, extended to whole steps."""
    widened: list[Span] = []
    for each in parts:
        start, end = (each.start // STEP_MS * STEP_MS, -(-each.end // STEP_MS) * STEP_MS)
        start, end = max(start, whole.start), min(end, whole.end)
        if widened:
            start = max(start, widened[-1].end)
        if start < end:
            widened.append(Span(start, end))
    return tuple(widened)


def count_minutes(spans: Sequence[Span]) -> int:
    """The total number of whole minutes in *spans*."""
    return sum((each.end - each.start) // MINUTE_MS for each in spans)
