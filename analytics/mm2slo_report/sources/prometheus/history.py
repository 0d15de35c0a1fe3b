"""What was found out of Prometheus's history so far, and how it goes on.

Hours that are over are read once; the running one again for each query. Time that was
looked at starts a day before the oldest question, or where Prometheus's own history starts.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Indicator
from mm2slo_report.sources.prometheus.journal import Journal, JournalScan, Known
from mm2slo_report.sources.prometheus.presence import HOUR_MS, Presence, PresenceScan
from mm2slo_report.sources.prometheus.series import TOTAL, Reader
from mm2slo_report.sources.prometheus.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_report.sources.prometheus.api import PrometheusClient

DAY_MS: Final = 86_400_000
_FARTHEST_DAYS: Final = 400
_LATE_MS: Final = 25 * HOUR_MS
"""How much earlier than its first look, once a day, an indicator may have been there."""
_CLOSED_AFTER: Final = 2 * HOUR_MS
"""An hour is over when the next one is as well: whether it was even depends on that one, too."""
_SETTLES: Final = 2 * MINUTE_MS
_FRESH: Final = 10 * MINUTE_MS
_STEP: Final = 4 * DAY_MS
"""What is read at a go: as many days as are asked for at once."""


@dataclass(frozen=True, slots=True)
class View:
    """What is known up to a moment."""

    presence: Presence
    journal: Journal


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the history is read; both in seconds."""

    done: float
    whole: float


@dataclass(slots=True)
class _Closed:
    """Hours that are over: [start, end)."""

    start: int
    end: int
    presence: Presence
    journal: Journal


class History:
    """Looks at Prometheus's history and keeps what it found. Safe for several threads."""

    def __init__(self, client: PrometheusClient, clock: Callable[[], int]) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.RLock()
        self._reader = Reader()
        self._range_closed: bool | None = None
        self._found: _Closed | None = None
        self._oldest: tuple[int, Mapping[Indicator, int]] | None = None
        self._newest: tuple[int, int, View] | None = None
        self._values: Values | None = None
        self._progress: Progress | None = None

    @property
    def progress(self) -> Progress | None:
        """Of what is being read for the first time; None: nothing is. Never waits."""
        return self._progress

    @property
    def settled(self) -> int:
        """What is before it does not change any more."""
        return self._clock() - _SETTLES

    def values(self) -> Values:
        """Values of the counters. Raises SliSourceError."""
        with self._lock:
            if self._values is None:
                self._values = Values(self._client, self._reader, closed=self._closed_ranges())
            return self._values

    def oldest(self) -> Mapping[Indicator, int]:
        """Where each indicator's samples start, at most 25 hours late. Raises SliSourceError."""
        with self._lock:
            now = self._clock()
            if self._oldest is None or not 0 <= now - self._oldest[0] < _FRESH:
                self._oldest = now, self._seen(now)
            return self._oldest[1]

    def view(self, start: int, end: int) -> View:
        """All that matters to spans within [start, end). Raises SliSourceError."""
        with self._lock:
            oldest = min(self.oldest().values(), default=end) - _LATE_MS
            horizon = max(oldest, min(start, end) - DAY_MS) // DAY_MS * DAY_MS
            known = self._newest
            if (
                known is not None
                and known[0] == end
                and self._found is not None
                and self._found.start <= horizon
                and (end <= self.settled or known[1] == self._clock() // MINUTE_MS)
            ):
                return known[2]
            view = self._look(horizon, max(end, horizon), oldest)
            self._newest = end, self._clock() // MINUTE_MS, view
            return view

    def seen(self) -> View | None:
        """The newest view, if there was one."""
        with self._lock:
            return None if self._newest is None else self._newest[2]

    def forget(self) -> None:
        """Read everything again: Prometheus's history is no longer what it was."""
        with self._lock:
            self._found = self._newest = self._oldest = None
            if self._values is not None:
                self._values.forget()

    def _look(self, horizon: int, end: int, oldest: int) -> View:
        closed_ranges = self._closed_ranges()
        presences = PresenceScan(self._client, self._reader, closed=closed_ranges)
        journals = JournalScan(self._client, self._reader, self.values(), closed=closed_ranges)
        known = Known(self.settled, horizon if horizon <= oldest else horizon + DAY_MS)
        found = self._found
        if found is None or found.start > horizon:
            found = _Closed(horizon, horizon, Presence(horizon), Journal())
        last = min(end, self.settled) // HOUR_MS * HOUR_MS - _CLOSED_AFTER
        if last > found.end:
            try:
                # What was found stays found when the next step fails.
                for part in _steps(found.end, last):
                    self._progress = _progress(found, last)
                    presence = found.presence.merged(presences.scan(part, found.start))
                    journal = found.journal.copy()
                    journals.scan(part, presence, journal, known)
                    found = _Closed(found.start, part.end, presence, journal)
                    self._found = found
            finally:
                self._progress = None
        self._found = found
        if end <= found.end:
            return View(found.presence, found.journal)
        rest = Span(found.end, end)
        presence = found.presence.merged(presences.scan(rest, found.start))
        journal = found.journal.copy()
        journals.scan(rest, presence, journal, known)
        return View(presence, journal)

    def _closed_ranges(self) -> bool:
        """Whether a range holds its start: asked of the server, as it need not be Prometheus."""
        if self._range_closed is None:
            answer = self._client.query("count_over_time(vector(1)[1m:1m])", DAY_MS)
            self._range_closed = bool(answer) and answer[0].points[0].value > 1
        return self._range_closed

    def _seen(self, now: int) -> Mapping[Indicator, int]:
        by = "by (source, target, sli, tier)"
        start = now - _FARTHEST_DAYS * DAY_MS
        answer = [
            *self._client.query_range(f"count {by} ({TOTAL})", start, now, DAY_MS),
            # What is younger than a day may fall between two looks.
            *self._client.query(f"count {by} (count_over_time({TOTAL}[{_LATE_MS}ms]))", now),
        ]
        found: dict[Indicator, int] = {}
        for each in answer:
            series = self._reader.series(each.labels)
            if series is not None:
                at = each.points[0].at
                found[series.indicator] = min(at, found.get(series.indicator, at))
        return found


def _steps(start: int, end: int) -> list[Span]:
    return [Span(at, min(at + _STEP, end)) for at in range(start, end, _STEP)]


def _progress(found: _Closed, last: int) -> Progress:
    return Progress((found.end - found.start) / 1000, (last - found.start) / 1000)
