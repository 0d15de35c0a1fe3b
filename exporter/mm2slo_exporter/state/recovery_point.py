"""What would be missing on the target if the source never came back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_exporter.state.flow_report import PartitionState


@dataclass(frozen=True, slots=True)
class Unreplicated:
    """Unreplicated source records, and the age of the oldest one; None if unknown."""

    records: int | None = None
    seconds: float | None = None


NOTHING_KNOWN = Unreplicated()


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """The unreplicated records of a flow when its source was last read."""

    unreplicated: Unreplicated
    read_at: float


def sum_unreplicated(partitions: Iterable[PartitionState]) -> Unreplicated:
    """Sum over the partitions whose lag is known; unknown if that is 0 and others are unknown."""
    states = list(partitions)
    records = sum(state.lag_records or 0 for state in states)
    seconds = max((state.lag_seconds or 0.0 for state in states), default=0.0)
    return Unreplicated(
        records if records or all(s.lag_records is not None for s in states) else None,
        seconds if seconds > 0 or all(s.lag_seconds is not None for s in states) else None,
    )
