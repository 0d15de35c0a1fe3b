"""Shutdown of threads that may be waiting for a cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def run_in_parallel(stops: Sequence[Callable[[], None]]) -> None:
    """Call all of *stops* in parallel, so that their waits do not add up."""
    if not stops:
        return
    with ThreadPoolExecutor(max_workers=len(stops)) as pool:
        for done in [pool.submit(stop) for stop in stops]:
            done.result()
