"""The recorder: rounds of scraping, minutes of totals, and a store that may be away for a while."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.errors import UserError
from mm2slo_core.reporting.history import MINUTE_MS
from mm2slo_report.recording.health import RecorderHealth, TargetHealth
from mm2slo_report.recording.minutes import Minute, Minutes
from mm2slo_report.recording.pooling import Pool
from mm2slo_report.recording.rounds import Rounds
from mm2slo_report.recording.scraping import TIMEOUT, ScrapeError, Scraper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_report.recording.duty import Duty
    from mm2slo_report.recording.exposition import Page
    from mm2slo_report.recording.ports import HistoryStore
    from mm2slo_report.recording.scraping import Target

logger = logging.getLogger(__name__)

_DAY: Final = 86_400
MARGIN: Final = 35 * _DAY
"""Seconds that minutes are kept beyond the longest window: for the period before, for `at` in the
past, and for exclusions that are added late."""
_HOURS_KEPT_MS: Final = 3 * 366 * _DAY * 1000
"""A year, the one before, and the one before that, to compare with."""
_THIN_EVERY_MS: Final = 3_600_000
_MOST_WAITING: Final = 120
"""Minutes kept for a store that is away. Events of older ones show in the first that is stored."""


def kept_for(longest_window: float) -> float:
    """How long history is kept by the minute, in seconds."""
    return longest_window + MARGIN


class Recorder:
    """Keeps the counters of *targets* in *store*. *clock* gives epoch ms.

    `run_once` and `tend` are for one thread, `health` and `end` for any. Nothing is raised for an
    exporter or a store that is away: `health` tells it.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        store: HistoryStore,
        clock: Callable[[], int],
        *,
        keep: float,
        duty: Duty | None = None,
        timeout: float = TIMEOUT,
        rounds: Rounds | None = None,
    ) -> None:
        """*keep*: seconds for which minutes are kept, see `kept_for`. *duty* None: always ours."""
        self._store = store
        self._clock = clock
        self._keep_ms = round(keep * 1000)
        self._duty = duty
        self._rounds = rounds or Rounds(
            [Scraper(each, timeout=timeout) for each in targets], timeout
        )
        self._minutes: Minutes | None = None
        self._waiting: deque[Minute] = deque(maxlen=_MOST_WAITING)
        self._thinned_at: int | None = None
        self._lock = threading.Lock()
        self._health = RecorderHealth(
            targets=tuple(TargetHealth(name=each.name) for each in targets)
        )

    @property
    def health(self) -> RecorderHealth:
        """How it goes."""
        with self._lock:
            return self._health

    def run_once(self) -> None:
        """Scrape all targets once."""
        now = self._clock()
        minutes = self._on_duty()
        if minutes is None:
            return
        self._keep(minutes.ended(now))
        results = self._rounds.scrape()
        self._note(now, results)
        pages = {name: page for name, page in results.items() if not isinstance(page, ScrapeError)}
        minutes.add(now, pages)
        self._tell(ahead_ms=max((minutes.running or now) - now, 0))

    def tend(self) -> None:
        """Store the minute that has ended, and thin out and forget once an hour."""
        now = self._clock()
        if self._minutes is None:
            return
        self._keep(self._minutes.ended(now))
        if self._thinned_at is None or now - self._thinned_at >= _THIN_EVERY_MS:
            self._thinned_at = now
            try:
                self._store.thin(now, self._keep_ms)
                self._store.forget(now - max(_HOURS_KEPT_MS, self._keep_ms))
            except UserError as error:
                self._tell(store_problem=str(error))

    def end(self) -> None:
        """Make a running round return early."""
        self._rounds.end()

    def close(self) -> None:
        """Store what there is of the running minute, and give back what is held."""
        self._rounds.close()
        if self._minutes is not None:
            self._keep(self._minutes.cut())
        try:
            if self._duty is not None:
                self._duty.end()
        except UserError as error:
            self._tell(store_problem=str(error))

    def _on_duty(self) -> Minutes | None:
        """The running minute, where it is ours to record."""
        try:
            other = self._duty.other() if self._duty is not None else None
            if other is not None:
                # What we know is old by the time that we take over again.
                self._minutes = None
                self._waiting.clear()
                # Reports of this service speak of what the other one has stored.
                until = _end(self._store.latest_minute())
                self._tell(recorded_by=other, recorded_until=until, waiting=0, store_problem="")
            elif self._minutes is None:
                self._resume()
        except UserError as error:
            # The store is away. Nobody can take over meanwhile, so gathering goes on.
            self._tell(store_problem=str(error))
        return self._minutes

    def _resume(self) -> None:
        newest = self._store.latest_minute()
        pool = Pool(self._store.latest_tallies(), self._store.recorder_states())
        self._minutes = Minutes(pool)
        until = _end(newest)
        self._tell(recorded_by="", recorded_until=until, store_problem="")

    def _keep(self, ended: Minute | None) -> None:
        """Store what waits, the oldest first."""
        if ended is not None:
            self._waiting.append(ended)
        while self._waiting:
            minute = self._waiting[0]
            try:
                self._store.record_minute(minute.at, minute.tallies, minute.seen, minute.states)
            except UserError as error:
                self._tell(store_problem=str(error), waiting=len(self._waiting))
                return
            self._waiting.popleft()
            self._tell(
                store_problem="",
                waiting=len(self._waiting),
                recorded_until=minute.at + MINUTE_MS,
            )

    def _note(self, now: int, results: Mapping[str, Page | ScrapeError]) -> None:
        with self._lock:
            before = self._health.targets
            targets = tuple(_after(each, now, results.get(each.name)) for each in before)
            self._health = replace(self._health, targets=targets)
        for old, new in zip(before, targets, strict=True):
            if new.problem and new.problem != old.problem:
                logger.warning("%s cannot be scraped: %s", new.name, new.problem)
            elif old.problem and not new.problem:
                logger.info("%s can be scraped again", new.name)

    def _tell(self, **changes: str | int | None) -> None:
        with self._lock:
            before, self._health = self._health, replace(self._health, **changes)  # type: ignore[arg-type]  # by name
            now = self._health
        if now.store_problem and now.store_problem != before.store_problem:
            logger.warning("the history cannot be stored: %s", now.store_problem)
        if now.recorded_by and now.recorded_by != before.recorded_by:
            logger.info("%s records the history; this service waits", now.recorded_by)


def _end(minute: int | None) -> int | None:
    return None if minute is None else minute + MINUTE_MS


def _after(known: TargetHealth, now: int, result: Page | ScrapeError | None) -> TargetHealth:
    """The health of a target once a round gave *result*; None: it was cut short."""
    if result is None:
        return known
    scrapes = known.scrapes + 1
    if isinstance(result, ScrapeError):
        return replace(known, scrapes=scrapes, failures=known.failures + 1, problem=str(result))
    return replace(
        known,
        scrapes=scrapes,
        last_success=now,
        indicators=len(result.tallies),
        left_out=result.left_out,
        problem="",
    )
