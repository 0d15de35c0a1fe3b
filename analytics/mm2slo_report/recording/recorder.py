"""The recorder: scrapes exporters, accumulates minutes, buffers them while the store is down."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.reporting.minute_counts import MINUTE_MS
from mm2slo_core.user_errors import UserError
from mm2slo_report.recording.minute_accumulator import MinuteAccumulator, RecordedMinute
from mm2slo_report.recording.recorder_health import RecorderHealth, TargetHealth
from mm2slo_report.recording.replica_totals import ReplicaTotals
from mm2slo_report.recording.scrape_rounds import ScrapeRounds
from mm2slo_report.recording.scraper import TIMEOUT, ScrapeError, Scraper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_report.recording.exposition import Page
    from mm2slo_report.recording.history_store import HistoryStore
    from mm2slo_report.recording.recorder_lease import RecorderLease
    from mm2slo_report.recording.scraper import Target

logger = logging.getLogger(__name__)

_DAY: Final = 86_400
RETENTION_MARGIN: Final = 35 * _DAY
"""Seconds that minutes are kept beyond the longest window: for `at` in the past, the previous
period, and exclusions that are added late."""
_HOURS_KEPT_MS: Final = 3 * 366 * _DAY * 1000
"""Three years, to compare a year with the previous ones."""
_THIN_EVERY_MS: Final = 3_600_000
_MAX_UNSTORED: Final = 120
"""Minutes buffered while the store is down. Events of dropped ones count in the next stored one."""


def minute_retention(longest_window: float) -> float:
    """Seconds for which minutes are kept."""
    return longest_window + RETENTION_MARGIN


class Recorder:
    """Records the counters of *targets* in *store*. *clock* returns epoch ms.

    `run_once` and `run_maintenance` are for one thread, `health` and `end` for any. An exporter or
    store that is unreachable raises nothing; `health` reports it.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        store: HistoryStore,
        clock: Callable[[], int],
        *,
        keep: float,
        lease: RecorderLease | None = None,
        timeout: float = TIMEOUT,
        rounds: ScrapeRounds | None = None,
    ) -> None:
        """*keep*: seconds for which minutes are kept. *lease* None: no other service records."""
        self._store = store
        self._clock = clock
        self._keep_ms = round(keep * 1000)
        self._lease = lease
        self._rounds = rounds or ScrapeRounds(
            [Scraper(each, timeout=timeout) for each in targets], timeout
        )
        self._minutes: MinuteAccumulator | None = None
        self._unstored: deque[RecordedMinute] = deque(maxlen=_MAX_UNSTORED)
        self._thinned_at: int | None = None
        self._lock = threading.Lock()
        self._health = RecorderHealth(
            targets=tuple(TargetHealth(name=each.name) for each in targets)
        )

    @property
    def health(self) -> RecorderHealth:
        """The current state."""
        with self._lock:
            return self._health

    def run_once(self) -> None:
        """Scrape all targets once."""
        now = self._clock()
        minutes = self._minutes_if_recording()
        if minutes is None:
            return
        self._store_minutes(minutes.take_ended(now))
        results = self._rounds.scrape()
        self._update_targets(now, results)
        pages = {name: page for name, page in results.items() if not isinstance(page, ScrapeError)}
        minutes.add(now, pages)
        self._update_health(ahead_ms=max((minutes.current or now) - now, 0))

    def run_maintenance(self) -> None:
        """Store the minute if it has ended; apply retention once an hour."""
        now = self._clock()
        if self._minutes is None:
            return
        self._store_minutes(self._minutes.take_ended(now))
        if self._thinned_at is None or now - self._thinned_at >= _THIN_EVERY_MS:
            self._thinned_at = now
            try:
                self._store.thin(now, self._keep_ms)
                self._store.forget(now - max(_HOURS_KEPT_MS, self._keep_ms))
            except UserError as error:
                self._update_health(store_problem=str(error))

    def end(self) -> None:
        """Interrupt a running scrape round."""
        self._rounds.end()

    def close(self) -> None:
        """Store the current minute so far, and release the lease and connections."""
        self._rounds.close()
        if self._minutes is not None:
            self._store_minutes(self._minutes.take())
        try:
            if self._lease is not None:
                self._lease.release()
        except UserError as error:
            self._update_health(store_problem=str(error))

    def _minutes_if_recording(self) -> MinuteAccumulator | None:
        """The accumulator if this service records; None: another one does."""
        try:
            other = self._lease.other_holder() if self._lease is not None else None
            if other is not None:
                # This state is stale by the time this service takes over again.
                self._minutes = None
                self._unstored.clear()
                # This service reports from what the other one has stored.
                until = _end(self._store.latest_minute())
                self._update_health(
                    recorded_by=other, recorded_until=until, unstored_minutes=0, store_problem=""
                )
            elif self._minutes is None:
                self._resume()
        except UserError as error:
            # The store is down, so no other service can take over: keep accumulating.
            self._update_health(store_problem=str(error))
        return self._minutes

    def _resume(self) -> None:
        newest = self._store.latest_minute()
        totals = ReplicaTotals(self._store.latest_tallies(), self._store.recorder_states())
        self._minutes = MinuteAccumulator(totals)
        until = _end(newest)
        self._update_health(recorded_by="", recorded_until=until, store_problem="")

    def _store_minutes(self, ended: RecordedMinute | None) -> None:
        """Store unstored minutes, the oldest first."""
        if ended is not None:
            self._unstored.append(ended)
        while self._unstored:
            minute = self._unstored[0]
            try:
                self._store.record_minute(minute.at, minute.tallies, minute.seen, minute.states)
            except UserError as error:
                self._update_health(store_problem=str(error), unstored_minutes=len(self._unstored))
                return
            self._unstored.popleft()
            self._update_health(
                store_problem="",
                unstored_minutes=len(self._unstored),
                recorded_until=minute.at + MINUTE_MS,
            )

    def _update_targets(self, now: int, results: Mapping[str, Page | ScrapeError]) -> None:
        with self._lock:
            before = self._health.targets
            targets = tuple(_after(each, now, results.get(each.name)) for each in before)
            self._health = replace(self._health, targets=targets)
        for old, new in zip(before, targets, strict=True):
            if new.problem and new.problem != old.problem:
                logger.warning("%s cannot be scraped: %s", new.name, new.problem)
            elif old.problem and not new.problem:
                logger.info("%s can be scraped again", new.name)

    def _update_health(self, **changes: str | int | None) -> None:
        with self._lock:
            before, self._health = self._health, replace(self._health, **changes)  # type: ignore[arg-type]  # by name
            now = self._health
        if now.store_problem and now.store_problem != before.store_problem:
            logger.warning("the history cannot be stored: %s", now.store_problem)
        if now.recorded_by and now.recorded_by != before.recorded_by:
            logger.info("%s records the history; this service is on standby", now.recorded_by)


def _end(minute: int | None) -> int | None:
    return None if minute is None else minute + MINUTE_MS


def _after(known: TargetHealth, now: int, result: Page | ScrapeError | None) -> TargetHealth:
    """The health of a target after *result*; None: the round was interrupted."""
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
