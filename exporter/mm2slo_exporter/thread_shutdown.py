"""Shutdown of threads that may be waiting for a cluster."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

STOP_SECONDS = 3.0


def join_thread(thread: threading.Thread, timeout: float = STOP_SECONDS) -> None:
    """Wait for a stopping daemon thread for at most *timeout* seconds.

    A thread blocked by an unreachable cluster ends later, with its request or the process.
    """
    if not thread.is_alive():
        return
    thread.join(timeout)
    if thread.is_alive():
        logger.debug("thread %s is still waiting for a cluster; not waiting for it", thread.name)


def run_in_parallel(stops: Sequence[Callable[[], None]]) -> None:
    """Call all of *stops* in parallel, so that their waits do not add up."""
    if not stops:
        return
    with ThreadPoolExecutor(max_workers=len(stops)) as pool:
        for done in [pool.submit(stop) for stop in stops]:
            done.result()
