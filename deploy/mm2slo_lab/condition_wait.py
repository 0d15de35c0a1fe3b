"""Waits for a condition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mm2slo_lab.lab_errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE: Final = 180.0
"""Seconds; a machine that stalls is no failure."""


def wait_for(
    condition: Callable[[], bool], what: str, timeout: float = PATIENCE, poll: float = 0.1
) -> float:
    """Wait until *condition*; returns the seconds it took. Raises LabError after *timeout*."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > timeout:
            raise LabError(f"timed out after {timeout:.0f} s waiting for {what}")
        time.sleep(poll)
    return time.monotonic() - start
