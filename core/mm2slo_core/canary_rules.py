"""How canaries are judged, and the values that tell of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mm2slo_core.pending_canaries import PendingCanary, Punctuality
from mm2slo_core.sli_counters import Sli, SliKey, latency_tier

AVAILABILITY = SliKey(Sli.AVAILABILITY)
COMPLETENESS = SliKey(Sli.COMPLETENESS)
UNIQUENESS = SliKey(Sli.UNIQUENESS)
ORDER = SliKey(Sli.ORDER)
AFFINITY = SliKey(Sli.AFFINITY)


@dataclass(frozen=True, slots=True)
class CanaryRules:
    """How canaries of one flow are judged. Times in seconds."""

    deadline: float = 60.0
    latency_tiers: tuple[float, ...] = (10.0, 60.0)
    own_topic: bool = False
    """The carrier is the canary topic, so that uniqueness, order and affinity mean something."""
    confirm_losses: bool = False
    """The carrier is compacted: a loss counts only after the source was seen to hold the record."""
    pending_limit: int = 1_000_000
    """Canaries awaited after their deadline; beyond it the oldest become unknown."""

    def __post_init__(self) -> None:
        if self.deadline <= 0:
            raise ValueError(f"deadline is {self.deadline!r}: expected a positive time")
        late = [tier for tier in self.latency_tiers if not 0 < tier <= self.deadline]
        if late:
            raise ValueError(f"latency tiers {late!r} are not within 0 and {self.deadline!r} s")

    @property
    def time_limits(self) -> tuple[tuple[SliKey, float], ...]:
        """Availability and each latency tier, with the seconds an arrival may take."""
        tiers = ((SliKey(Sli.LATENCY, latency_tier(tier)), tier) for tier in self.latency_tiers)
        return ((AVAILABILITY, self.deadline), *tiers)

    @property
    def indicators(self) -> tuple[SliKey, ...]:
        """Every indicator that canaries of this carrier settle."""
        timed = (key for key, _ in self.time_limits)
        own = (UNIQUENESS, ORDER, AFFINITY) if self.own_topic else ()
        return (*timed, COMPLETENESS, *own)


@dataclass(slots=True)
class CanaryTotals:
    """Canaries counted by fate; a canary may appear in several."""

    sent: int = 0
    """Acknowledged by the source."""
    received: int = 0
    """First arrivals."""
    late: int = 0
    lost: int = 0
    expired: int = 0
    duplicates: int = 0
    reordered: int = 0
    moved: int = 0
    unknown: int = 0


class SentCanary(NamedTuple):
    """A canary of ours found on the source after a restart."""

    sequence: int
    partition: int
    source_offset: int
    sent_at: float

    def awaited(self, punctuality: Punctuality) -> PendingCanary:
        """As one that is awaited."""
        return PendingCanary(self.sequence, self.source_offset, self.sent_at, punctuality)


class Arrival(NamedTuple):
    """A canary of ours found on the target: it arrived within [not_before, at]."""

    sequence: int
    target_partition: int
    at: float
    not_before: float


class Suspect(NamedTuple):
    """A canary that did not arrive; lost if the source still holds it, else expired."""

    sequence: int
    partition: int
    source_offset: int
