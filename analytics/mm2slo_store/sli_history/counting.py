"""What was counted, as differences of totals: only hours in which a span starts or ends are read.

The total at a moment is that at the end of the minute before it. Where the hour has no row, the
newest earlier one counts; before the history started, what it started with.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.reporting.minute_counts import MinuteCounts, SpanCounts
from mm2slo_store.sli_history import finding
from mm2slo_store.sli_history.hour import at_end, at_minute, minutes_within, place
from mm2slo_store.sli_history.naming import Known, known
from mm2slo_store.sli_history.packing import growth

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.minute_counts import Indicator
    from mm2slo_store.sli_history.finding import Key
    from mm2slo_store.sli_history.hour import Hour
    from mm2slo_store.sli_history.rows import TallyAt


class _FirstHour(NamedTuple):
    """An indicator with a history."""

    number: int
    hour: int


def span_counts(
    connection: Connection, wanted: Sequence[Indicator], spans: Sequence[Span]
) -> dict[Indicator, tuple[SpanCounts, ...]]:
    """What each indicator counted in each span; zeros for one that was never recorded."""
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    found = _totals(connection, known(connection, wanted), edges)
    nothing = tuple(SpanCounts() for _ in spans)
    return {
        each: tuple(_between(found[each][span.start], found[each][span.end]) for span in spans)
        if each in found
        else nothing
        for each in wanted
    }


def minute_counts(
    connection: Connection, indicator: Indicator, span: Span
) -> tuple[MinuteCounts, ...]:
    """The minutes of *span* that hold a sample, in order."""
    row = known(connection, [indicator]).get(indicator)
    if row is None:
        return ()
    first, last = place(span.start)[0], place(span.end - 1)[0]
    rows = finding.of_indicator(connection, row.id, first, last)
    return tuple(chain.from_iterable(minutes_within(each, span) for each in rows))


def _between(start: TallyAt, end: TallyAt) -> SpanCounts:
    before, minutes_before, coarse_start = start
    now, minutes, coarse_end = end
    good, total, unknown = growth(before, now)
    return SpanCounts(
        good=good,
        total=total,
        unknown=unknown,
        minutes=minutes - minutes_before,
        coarse=coarse_start or coarse_end,
    )


def _totals(
    connection: Connection, recorded: Mapping[Indicator, Known], moments: Iterable[int]
) -> dict[Indicator, dict[int, TallyAt]]:
    """The totals of those that have a history, by moment."""
    started = {
        each: _FirstHour(row.id, place(row.first_at)[0])
        for each, row in recorded.items()
        if row.first_at is not None
    }
    places = {at: place(at) for at in moments}
    rows = _rows(connection, started.values(), {hour for hour, _ in places.values()})
    return {
        each: {
            at: _total(rows[hour, first.number], hour, minute)
            for at, (hour, minute) in places.items()
        }
        for each, first in started.items()
    }


def _total(row: Hour, hour: int, minute: int) -> TallyAt:
    if row.hour < hour:
        return at_end(row)
    return at_minute(row, minute if row.hour == hour else 0)


def _rows(
    connection: Connection, started: Iterable[_FirstHour], wanted: Iterable[int]
) -> dict[Key, Hour]:
    """By hour and indicator the row that says most of it: its own, one before, or the first."""
    started = tuple(started)
    starts = {each.number: each.hour for each in started}
    hours = sorted(wanted)
    later = [hour for hour in hours if hour >= min(starts.values(), default=0)]
    found = finding.of_hours(connection, later, starts) if started and later else {}
    early = {(hour, number) for hour in hours for number, first in starts.items() if hour < first}
    firsts = finding.of_keys(connection, {(starts[number], number) for _, number in early})
    found.update({(hour, number): firsts[starts[number], number] for hour, number in early})
    for hour in hours:
        gaps = [number for number in starts if (hour, number) not in found]
        for number, row in finding.newest(connection, gaps, hour).items():
            found[hour, number] = row
    return found
