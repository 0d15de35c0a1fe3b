"""Waits for a condition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mm2slo_lab.lab_errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_for(
    condition: Callable[[], bool], what: str, timeout: float = 180.0, poll: float = 0.1
) -> float:
    """Wait until *condition*; returns the seconds it took. Raises LabError after *timeout*."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > timeout:
            raise LabError(f"timed out after {timeout:.0f} s waiting for {what}")
        time.sleep(poll)
    return time.monotonic() - start
