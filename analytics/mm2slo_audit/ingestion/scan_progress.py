"""How far the reading is: records that finished tasks have read."""

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
    """Sums up the progress of one job after the other."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._done = 0

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
        self._tell(self._done + current)


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
