"""The query of a report: objectives, instant and window, and the periods to choose from."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cached_property
from typing import Final

from mm2slo_core.catalogue.prometheus_series import WINDOW_SECONDS
from mm2slo_core.objectives.exclusion import Exclusion, Span, excluded_from_reports
from mm2slo_core.objectives.objective import Objective
from mm2slo_core.quantity_text import format_duration, parse_shorthand
from mm2slo_core.reporting.report_entry import ReportWindow, WindowKind
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, Indicator, whole_minute
from mm2slo_core.topology import Flow


@dataclass(frozen=True, kw_only=True)
class ReportQuery:
    """Objectives as of `as_of` (epoch ms), over `window` or over the window of each objective."""

    objectives: tuple[Objective, ...]
    as_of: int
    zone: tzinfo
    window: ReportWindow | None = None
    exclusions: tuple[Exclusion, ...] = ()
    maintenance_tail_ms: int = 0
    """The source also leaves out the steps that end so soon after maintenance."""

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
        return clip_spans(self._excluded_by_flow[objective.flow], span)

    def left_out(self, objective: Objective, span: Span) -> tuple[Span, ...]:
        """The parts of *span* without steps to expect: excluded ones, and the tail of each."""
        excluded, tail = self._excluded_by_flow[objective.flow], self.maintenance_tail_ms
        return clip_spans((Span(each.start, each.end + tail) for each in excluded), span)

    def minutes_to_measure(self, objective: Objective, span: Span) -> int:
        """The minutes of *span* that are not left out."""
        return count_minutes([span]) - count_minutes(self.left_out(objective, span))

    def spans_by_name(self, objective: Objective) -> Mapping[str, Span]:
        """The window, the window before and the burn windows, by name."""
        return self._spans_by_window[objective.window]

    @cached_property
    def _excluded_by_flow(self) -> Mapping[Flow, tuple[Span, ...]]:
        flows = dict.fromkeys(each.flow for each in self.objectives)
        return {flow: excluded_from_reports(self.exclusions, flow) for flow in flows}

    @cached_property
    def _own_windows(self) -> Mapping[float, ReportWindow]:
        lengths = dict.fromkeys(each.window for each in self.objectives)
        return {length: rolling_window(length, self.as_of) for length in lengths}

    @cached_property
    def _spans_by_window(self) -> Mapping[float, Mapping[str, Span]]:
        now = self.now
        burns = {
            name: Span(now - round(seconds * 1000), now) for name, seconds in WINDOW_SECONDS.items()
        }
        windows = {length: self.window or own for length, own in self._own_windows.items()}
        return {
            length: {
                WINDOW: Span(each.start, each.end),
                BEFORE: preceding_span(each, self.zone),
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


def clip_spans(parts: Iterable[Span], whole: Span) -> tuple[Span, ...]:
    """The *parts* (in order, without overlaps) within *whole*, extended to whole steps."""
    widened: list[Span] = []
    for each in parts:
        # Counters say how much a step increased, not when within it, so a step cannot be divided.
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


ACCEPTED: Final = "28d, 2026, 2026-Q3, 2026-07, 2026-W30 or 2026-07-14"
"""One example of each format."""

_STEP_SECONDS: Final = STEP_MS / 1000
"""Of a history; shorter or odd periods would share their steps with other periods."""
_LONGEST_ROLLING: Final = 366 * 86_400.0

_FIRST_YEAR: Final = 1970
"""Earlier years have no data, and are close to the limits of `date` in some time zones."""


@dataclass(frozen=True, slots=True)
class _Dates:
    """The dates [start, end) of a period, and the start of the period before."""

    start: date
    end: date
    before: date


def rolling_window(seconds: float, as_of: int) -> ReportWindow:
    """The last *seconds* before *as_of* (epoch ms), in whole minutes."""
    end = whole_minute(as_of)
    return ReportWindow(
        kind=WindowKind.ROLLING,
        name=format_duration(seconds),
        start=end - round(seconds * 1000),
        end=end,
        seconds=seconds,
    )


def parse_period(text: str, as_of: int, zone: tzinfo) -> ReportWindow:
    """The part of the period *text* before *as_of* (epoch ms).

    Calendar periods start at midnight in *zone*; weeks are ISO 8601 weeks. Raises ValueError for an
    invalid period and for one in the future.
    """
    seconds = parse_shorthand(text)
    if seconds is not None:
        if seconds > _LONGEST_ROLLING:
            raise ValueError(f"period {text!r} is longer than 366d; expected {ACCEPTED}")
        if over := seconds % _STEP_SECONDS:
            near = [at for at in (seconds - over, seconds - over + _STEP_SECONDS) if at]
            expected = " or ".join(map(format_duration, near))
            raise ValueError(f"period {text!r} is no multiple of 5m; expected {expected}")
        return rolling_window(seconds, as_of)
    dates = _dates(text)
    if dates.start.year < _FIRST_YEAR:
        raise ValueError(f"period {text!r} is before {_FIRST_YEAR}; expected {ACCEPTED}")
    start, whole_end = _midnight(dates.start, zone), _midnight(dates.end, zone)
    end = min(whole_end, whole_minute(as_of))
    if end <= start:
        raise ValueError(f"period {text!r} is in the future; expected a current one, as in 28d")
    return ReportWindow(
        kind=WindowKind.CALENDAR,
        name=text,
        start=start,
        end=end,
        seconds=(whole_end - start) / 1000,
    )


def preceding_span(window: ReportWindow, zone: tzinfo) -> Span:
    """The period before *window*, of the same length if it is rolling."""
    if window.kind is WindowKind.ROLLING:
        return Span(2 * window.start - window.end, window.start)
    return Span(_midnight(_dates(window.name).before, zone), window.start)


def day_spans(window: ReportWindow, zone: tzinfo) -> tuple[Span, ...]:
    """The days of *window* in *zone*; the first and the last may be shorter."""
    day = datetime.fromtimestamp(window.start / 1000, zone).date()
    found = []
    start = window.start
    while start < window.end:
        # By the calendar, not by 24 hours: days of a clock change have 23 or 25.
        day += timedelta(days=1)
        end = min(_midnight(day, zone), window.end)
        if end > start:
            found.append(Span(start, end))
            start = end
    return tuple(found)


def _dates(text: str) -> _Dates:
    for pattern, read in _FORMS:
        match = pattern.fullmatch(text)
        if match is not None:
            try:
                return read(*map(int, match.groups()))
            except (ValueError, OverflowError) as error:
                raise ValueError(f"period {text!r}: {error}; expected {ACCEPTED}") from None
    raise ValueError(f"unknown period {text!r}; expected {ACCEPTED}")


def _months(year: int, first: int = 1, count: int = 12) -> _Dates:
    number = 12 * year + first - 1
    start, end, earlier = (
        date(each // 12, each % 12 + 1, 1) for each in (number, number + count, number - count)
    )
    return _Dates(start, end, earlier)


def _days(start: date, count: int) -> _Dates:
    length = timedelta(days=count)
    return _Dates(start, start + length, start - length)


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[..., _Dates]], ...]] = (
    (re.compile(r"(\d{4})", re.ASCII), _months),
    (
        re.compile(r"(\d{4})-Q([1-4])", re.ASCII),
        lambda year, quarter: _months(year, 3 * quarter - 2, 3),
    ),
    (
        re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII),
        lambda year, month: _months(year, month, 1),
    ),
    (
        re.compile(r"(\d{4})-W(\d{2})", re.ASCII),
        lambda year, week: _days(date.fromisocalendar(year, week, 1), 7),
    ),
    (
        re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII),
        lambda year, month, day: _days(date(year, month, day), 1),
    ),
)
"""Years, quarters, months, ISO 8601 weeks and days."""


def _midnight(day: date, zone: tzinfo) -> int:
    """The start of *day* (epoch ms); its first instant if a clock change skips midnight."""
    return round(datetime.combine(day, time(), zone).timestamp() * 1000)


def resolve_relative_period(text: str, as_of: int, zone: tzinfo) -> str:
    """Replace a relative period at *as_of* (epoch ms): `last-month` is `2026-06` in July 2026.

    Any other text is returned unchanged.
    """
    name = RELATIVE_PERIODS.get(text)
    if name is None:
        return text
    return name(datetime.fromtimestamp(as_of / 1000, UTC).astimezone(zone).date())


def _last_week(today: date) -> str:
    year, week, _ = (today - timedelta(days=7)).isocalendar()
    return f"{year:04}-W{week:02}"


def _last_quarter(today: date) -> str:
    number = 4 * today.year + (today.month - 1) // 3 - 1
    return f"{number // 4:04}-Q{number % 4 + 1}"


RELATIVE_PERIODS: Final[dict[str, Callable[[date], str]]] = {
    "yesterday": lambda today: f"{today - timedelta(days=1)}",
    "last-week": _last_week,
    "last-month": lambda today: f"{today.replace(day=1) - timedelta(days=1):%Y-%m}",
    "last-quarter": _last_quarter,
    "last-year": lambda today: f"{today.year - 1:04}",
}
