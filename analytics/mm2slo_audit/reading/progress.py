"""How far the reading is, for a line on a terminal and an estimate of its end."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext, StatusTracker

_EVERY_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class ReadingProgress:
    """Records read by finished tasks, of all that are to be read (offsets: records at most)."""

    read: int
    planned: int
    seconds: float

    @property
    def eta(self) -> float | None:
        """Seconds that remain at the rate so far; None before the first task has ended."""
        if not self.read or not self.planned:
            return None
        return self.seconds * (self.planned - self.read) / self.read


class Meter:
    """Sums up the progress of one job after the other."""

    def __init__(self, planned: int, tell: Callable[[ReadingProgress], None]) -> None:
        self._planned = planned
        self._tell = tell
        self._done = 0
        self._since = time.monotonic()

    @contextmanager
    def job(self, context: SparkContext, group: str, offsets: int, *, tasks: int) -> Iterator[None]:
        """Tell of the job that runs inside, which reads that many offsets in *tasks* or more."""
        context.setJobGroup(group, "mm2slo audit: reading")
        ended = threading.Event()
        tracker = context.statusTracker()
        watcher = threading.Thread(
            target=self._watch,
            args=(partial(_share, tracker, group, tasks), offsets, ended),
            name=group,
            daemon=True,
        )
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
        self._done += offsets
        self._report(0)

    def _watch(self, share: Callable[[], float], offsets: int, ended: threading.Event) -> None:
        while not ended.wait(_EVERY_SECONDS):
            # The JVM may be on its way out; progress is no reason to fail.
            with suppress(Exception):
                self._report(round(offsets * share()))

    def _report(self, current: int) -> None:
        seconds = time.monotonic() - self._since
        self._tell(ReadingProgress(self._done + current, self._planned, seconds))


def _share(tracker: StatusTracker, group: str, least: int) -> float:
    """Of the tasks of the group's reading stage; other stages have fewer tasks than *least*."""
    done = tasks = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            found = tracker.getStageInfo(stage)
            if found is not None and found.numTasks >= least:
                done += found.numCompletedTasks
                tasks += found.numTasks
    return done / tasks if tasks else 0.0
