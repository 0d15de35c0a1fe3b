"""What an open store does with the history of indicators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_store.open_store import OpenStore
from mm2slo_store.sli_history import counting, finding, naming, retention
from mm2slo_store.sli_history.hour import HOUR_MS, at_end, last_minute, place
from mm2slo_store.sli_history.recording import record, seen_tallies
from mm2slo_store.sli_history.states import keep_states, kept_states

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.minute_counts import Indicator, MinuteCounts, SpanCounts, Tally
    from mm2slo_store.sli_history.rows import CounterState


class SliHistory(OpenStore):
    """Totals of indicators by the minute. Instants are epoch ms, edges of spans whole minutes."""

    def record_minute(
        self,
        at: int,
        tallies: Mapping[Indicator, Tally],
        seen: Collection[Indicator],
        states: Iterable[CounterState] = (),
    ) -> None:
        """Keep the totals of those *seen* at the end of the minute that starts at *at*.

        All or nothing, along with the *states* of counters from which they were joined. A new
        indicator's history starts at zero. The newest minute may be recorded again, and is then
        replaced; earlier ones are never changed: what a clock that went back brings is left out,
        and its events show in the first minute after. Totals that fall stay where they were.

        Raises ValueError for an *at* within a minute, for one that was seen without totals, and
        for totals that are not finite.
        """
        found = seen_tallies(at, tallies, seen)
        with self._writing() as connection:
            record(connection, at, found)
            keep_states(connection, tuple(states))

    def recorder_states(self) -> tuple[CounterState, ...]:
        """The states of counters that were kept last, by replica."""
        with self._reading() as connection:
            return kept_states(connection)

    def latest_tallies(self) -> dict[Indicator, Tally]:
        """The newest totals of everything recorded."""
        with self._reading() as connection:
            known = naming.everything(connection)
            newest = finding.newest(connection, [row.id for row in known.values()])
            return {each: at_end(newest[row.id]).tally for each, row in known.items()}

    def latest_minute(self) -> int | None:
        """The start of the newest minute that was recorded of any indicator."""
        with self._reading() as connection:
            return finding.latest_minute(connection)

    def span_counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> dict[Indicator, tuple[SpanCounts, ...]]:
        """What each indicator counted in each span, in the order of *spans*.

        One that was never recorded counted nothing. An edge within a folded hour moves to the
        hour's start; the counts are then coarse.
        """
        with self._reading() as connection:
            return counting.span_counts(connection, indicators, spans)

    def minute_counts(self, indicator: Indicator, span: Span) -> tuple[MinuteCounts, ...]:
        """The minutes of *span* with a sample, in order. A folded hour is one entry."""
        with self._reading() as connection:
            return counting.minute_counts(connection, indicator, span)

    def first_seen(self, indicators: Collection[Indicator]) -> dict[Indicator, int | None]:
        """The first minute of each one's kept history; None: it has none."""
        with self._reading() as connection:
            known = naming.known(connection, indicators)
        return {each: known[each].first_at if each in known else None for each in indicators}

    def last_seen(
        self, indicators: Collection[Indicator], before: int
    ) -> dict[Indicator, int | None]:
        """End of the last minute with a sample until *before*; None without any."""
        hour = place(before - 1)[0]
        with self._reading() as connection:
            known = naming.known(connection, indicators)
            numbers = [row.id for row in known.values()]
            rows = finding.newest(connection, numbers, hour)
            found = {number: last_minute(row, before) for number, row in rows.items()}
            empty = [number for number, at in found.items() if at is None]
            for number, row in finding.newest(connection, empty, hour - 1).items():
                found[number] = last_minute(row, before)
        return {each: found.get(known[each].id) if each in known else None for each in indicators}

    def recorded_indicators(self) -> tuple[Indicator, ...]:
        """Every indicator with a history, in order of its names."""
        with self._reading() as connection:
            return tuple(naming.everything(connection))

    def thin(self, now: int, keep_minutes_ms: int) -> int:
        """Fold the minutes of hours that ended *keep_minutes_ms* before *now*; gives how many.

        Raises ValueError for less than an hour, which is still being recorded.
        """
        if keep_minutes_ms < HOUR_MS:
            raise ValueError(f"minutes kept for {keep_minutes_ms} ms: expected an hour or more")
        folded = 0
        while True:
            with self._writing() as connection:
                some = retention.fold_some(connection, now - keep_minutes_ms)
            if some is None:
                return folded
            folded += some

    def forget(self, before: int) -> int:
        """Delete hours that ended by *before*, but for each indicator's newest; gives how many."""
        with self._writing() as connection:
            return retention.forget(connection, before)
