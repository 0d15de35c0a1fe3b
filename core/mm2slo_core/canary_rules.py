"""Rules for canaries, and the values that describe them."""

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
    """How the canaries of one flow are settled. Times in seconds."""

    deadline: float = 60.0
    interval: float = 1.0
    """Between two canaries; those that were not sent while no process ran are unknown."""
    latency_tiers: tuple[float, ...] = (10.0, 60.0)
    own_topic: bool = False
    """The carrier is the canary topic, so uniqueness, order and affinity can be measured."""
    confirm_losses: bool = False
    """The carrier is compacted: a canary is lost only if the source still holds its record."""
    pending_limit: int = 1_000_000
    """Canaries kept after their deadline; beyond this the oldest become unknown."""

    def __post_init__(self) -> None:
        if self.deadline <= 0:
            raise ValueError(
                f"deadline is {self.deadline!r}; expected a positive number of seconds"
            )
        late = [tier for tier in self.latency_tiers if not 0 < tier <= self.deadline]
        if late:
            raise ValueError(
                f"latency_tiers has {late!r}; expected values between 0 and the deadline,"
                f" {self.deadline!r} s"
            )

    @property
    def time_limits(self) -> tuple[tuple[SliKey, float], ...]:
        """Availability and each latency tier, with the allowed seconds until arrival."""
        tiers = ((SliKey(Sli.LATENCY, latency_tier(tier)), tier) for tier in self.latency_tiers)
        return ((AVAILABILITY, self.deadline), *tiers)

    @property
    def indicators(self) -> tuple[SliKey, ...]:
        """The SLIs that canaries of this carrier settle."""
        timed = (key for key, _ in self.time_limits)
        own = (UNIQUENESS, ORDER, AFFINITY) if self.own_topic else ()
        return (*timed, COMPLETENESS, *own)


@dataclass(slots=True)
class CanaryTotals:
    """Canaries by outcome; a canary may count in several."""

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
    """A canary of this instance found on the source after a restart."""

    sequence: int
    partition: int
    source_offset: int
    sent_at: float

    def as_pending(self, punctuality: Punctuality) -> PendingCanary:
        return PendingCanary(self.sequence, self.source_offset, self.sent_at, punctuality)


class Arrival(NamedTuple):
    """A canary of this instance found on the target; it arrived within [not_before, at]."""

    sequence: int
    target_partition: int
    at: float
    not_before: float


class Suspect(NamedTuple):
    """A canary that did not arrive; lost if the source still holds it, else expired."""

    sequence: int
    partition: int
    source_offset: int
