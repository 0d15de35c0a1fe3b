"""Progress of the read, from finished Spark tasks."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext, StatusTracker

_EVERY_SECONDS: Final = 0.5


class ScanProgress:
    """Reports the offsets read by successive jobs."""

    def __init__(self, on_read: Callable[[int], None]) -> None:
        self._on_read = on_read
        self._done = 0

    @contextmanager
    def track_job(
        self, context: SparkContext, group: str, offsets: int, *, tasks: int
    ) -> Iterator[None]:
        """Report progress of the job in the context: *offsets* read in at least *tasks* tasks."""
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
            # The JVM may be shutting down; progress must not fail the run.
            with suppress(Exception):
                self._report(round(offsets * share()))

    def _report(self, current: int) -> None:
        self._on_read(self._done + current)


def _share(tracker: StatusTracker, group: str, min_tasks: int) -> float:
    """Finished share of the read stage's tasks; other stages have fewer tasks than *min_tasks*."""
    done = tasks = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            found = tracker.getStageInfo(stage)
            if found is not None and found.numTasks >= min_tasks:
                done += found.numCompletedTasks
                tasks += found.numTasks
    return done / tasks if tasks else 0.0
