"""Ending threads that may be waiting for a cluster."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 3.0


def end(thread: threading.Thread, patience: float = _PATIENCE_SECONDS) -> None:
    """Wait for a daemon thread that was told to stop.

    One that waits for a cluster which does not answer is left behind after *patience* seconds:
    it ends with its request, or with the process.
    """
    if not thread.is_alive():
        return
    thread.join(patience)
    if thread.is_alive():
        logger.debug("thread %s still waits for a cluster and is left behind", thread.name)


def all_at_once(stops: Sequence[Callable[[], None]]) -> None:
    """Call every one of *stops* side by side, so that their waits do not add up."""
    if not stops:
        return
    with ThreadPoolExecutor(max_workers=len(stops)) as pool:
        for done in [pool.submit(stop) for stop in stops]:
            done.result()
