"""When a report is too old to be published as the current state of its flow."""

from __future__ import annotations

from typing import Final

ROUNDS: Final = 3
"""An evaluation that is older than this many polls is stale."""
LEAST_SECONDS: Final = 15.0
"""A round takes 10 s if both clusters time out."""


def stale_after(poll_interval: float) -> float:
    """Age in seconds from which a report no longer shows the current state."""
    return max(ROUNDS * poll_interval, LEAST_SECONDS)
