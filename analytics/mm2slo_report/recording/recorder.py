"""The recorder: scrapes exporters, accumulates steps, buffers them while the store is down.

`RecordingThread` runs it at fixed intervals.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Self

from mm2slo_core.reporting.step_counts import STEP_MS, Indicator, Tally, whole_minute
from mm2slo_core.user_errors import UserError
from mm2slo_report.recording.exporter_scraper import (
    TIMEOUT,
    ScrapeError,
    Scraper,
    ScrapeRounds,
    ScrapeTarget,
)
from mm2slo_report.recording.recorder_history import (
    KEPT_MS,
    HistoryStore,
    RecorderHealth,
    RecorderLease,
    TargetHealth,
)
from mm2slo_report.recording.scraped_counters import Page, RecordedStep, StepAccumulator

log = logging.getLogger(__name__)
_FORGET_EVERY_MS: Final = 3_600_000

_MAX_UNSTORED: Final = 24
"""Steps buffered while the store is down; older ones stay unmeasured."""


class Recorder:
    """Records the counters of *targets* in *store*. *clock* returns epoch ms.

    `run_once` is for one thread, `health` and `end` for any. An exporter or store that is
    unreachable raises nothing; `health` reports it.
    """

    def __init__(
        self,
        targets: Sequence[ScrapeTarget],
        store: HistoryStore,
        clock: Callable[[], int],
        *,
        lease: RecorderLease | None = None,
        timeout: float = TIMEOUT,
        rounds: ScrapeRounds | None = None,
    ) -> None:
        """*lease* None: no other service records."""
        self._store = store
        self._clock = clock
        self._lease = lease
        self._rounds = rounds or ScrapeRounds(
            [Scraper(each, timeout=timeout) for each in targets], timeout
        )
        self._steps: StepAccumulator | None = None
        self._unstored: dict[int, RecordedStep] = {}
        self._stored_at = 0
        self._forgot_at = 0
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
        """Scrape all targets once. Once a minute, store the step so far before that."""
        now = self._clock()
        steps = self._steps_if_recording(now)
        if steps is None:
            return
        if self._stored_at != whole_minute(now):
            self._stored_at = whole_minute(now)
            self._store_steps(steps.take(), now)
            self._forget_old(now)
        results = self._rounds.scrape()
        self._update_targets(results)
        pages = {name: page for name, page in results.items() if not isinstance(page, ScrapeError)}
        ended = steps.add(now, pages)
        if ended is not None:
            self._store_steps(ended, now)
        self._update_health(ahead_ms=max(steps.end - STEP_MS - now, 0))

    def end(self) -> None:
        """Interrupt a running scrape round."""
        self._rounds.end()

    def close(self) -> None:
        """Store the current step so far, and release the lease and connections."""
        self._rounds.close()
        if self._steps is not None:
            self._store_steps(self._steps.take(), self._clock())
        try:
            if self._lease is not None:
                self._lease.release()
        except UserError as error:
            self._update_health(store_problem=str(error))

    def _steps_if_recording(self, now: int) -> StepAccumulator | None:
        """The accumulator if this service records; None: another one does."""
        try:
            other = self._lease.other_holder() if self._lease is not None else None
            if other is not None:
                # This state is stale by the time this service takes over again.
                self._steps = None
                self._unstored.clear()
                # This service reports from what the other one has stored.
                self._show_stored(now, other)
            elif self._steps is None:
                end, counts = self._show_stored(now)
                self._steps = StepAccumulator(self._store.recorder_states(), end, counts)
        except UserError as error:
            # The store is down, so no other service can take over: keep accumulating.
            self._update_health(store_problem=str(error))
        return self._steps

    def _show_stored(self, now: int, other: str = "") -> tuple[int, Mapping[Indicator, Tally]]:
        """Show until when there are steps, and the service that records; returns the newest."""
        found = self._store.latest_step()
        until = None
        if found is not None:
            # The newest one may not have ended.
            until = min(found[0], now // STEP_MS * STEP_MS)
        self._update_health(recorded_by=other, recorded_until=until, store_problem="")
        return found or (0, {})

    def _store_steps(self, step: RecordedStep | None, now: int) -> None:
        """Store unstored steps, the oldest first."""
        if step is not None:
            self._unstored[step.end] = step
        for end in sorted(self._unstored)[:-_MAX_UNSTORED]:
            del self._unstored[end]
        for end, each in sorted(self._unstored.items()):
            try:
                self._store.record_step(end, each.counts, each.states)
            except UserError as error:
                self._update_health(store_problem=str(error))
                return
            del self._unstored[end]
            self._update_health(store_problem="")
            if each.counts and end <= now:
                self._update_health(recorded_until=end)

    def _forget_old(self, now: int) -> None:
        if abs(now - self._forgot_at) < _FORGET_EVERY_MS:
            return
        self._forgot_at = now
        try:
            self._store.forget(now - KEPT_MS)
        except UserError as error:
            self._update_health(store_problem=str(error))

    def _update_targets(self, results: Mapping[str, Page | ScrapeError]) -> None:
        with self._lock:
            before = self._health.targets
            targets = tuple(_after(each, results.get(each.name)) for each in before)
            self._health = replace(self._health, targets=targets)
        for old, new in zip(before, targets, strict=True):
            if new.problem and new.problem != old.problem:
                log.warning("%s cannot be scraped: %s", new.name, new.problem)
            elif old.problem and not new.problem:
                log.info("%s can be scraped again", new.name)

    def _update_health(self, **changes: str | int | None) -> None:
        with self._lock:
            before, self._health = self._health, replace(self._health, **changes)  # type: ignore[arg-type]  # by name
            now = self._health
        if now.store_problem and now.store_problem != before.store_problem:
            log.warning("the history cannot be stored: %s", now.store_problem)
        if now.recorded_by and now.recorded_by != before.recorded_by:
            log.info("%s records the history; this service is on standby", now.recorded_by)


def _after(known: TargetHealth, result: Page | ScrapeError | None) -> TargetHealth:
    """The health of a target after *result*; None: the round was interrupted."""
    if result is None:
        return known
    scrapes = known.scrapes + 1
    if isinstance(result, ScrapeError):
        return replace(known, scrapes=scrapes, failures=known.failures + 1, problem=str(result))
    return replace(known, scrapes=scrapes, indicators=len(result.tallies), problem="")


INTERVAL: Final = 15.0

_STOP_TIMEOUT: Final = 5.0
"""Seconds to wait for the interrupted scrape round and the store."""


class RecordingThread:
    """Records while this context manager is active. *clock* returns epoch ms."""

    def __init__(
        self, recorder: Recorder, clock: Callable[[], int], *, interval: float = INTERVAL
    ) -> None:
        """*interval*: seconds between two scrapes."""
        self._recorder = recorder
        self._clock = clock
        self._interval_ms = max(1, round(interval * 1000))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mm2slo-recorder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop recording, after storing the current step."""
        self._stopping.set()
        self._recorder.end()
        self._thread.join(_STOP_TIMEOUT)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._recorder.run_once()
            except Exception:  # a failed round must not end the thread
                log.exception("a recording round failed unexpectedly")
            # At multiples of the interval, so that a step that ended is stored at once.
            left = self._interval_ms - self._clock() % self._interval_ms
            self._stopping.wait(left / 1000)
        self._recorder.close()
