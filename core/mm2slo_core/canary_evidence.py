"""Canaries past their deadline, and what proves that one is lost or expired."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.canary_rules import Suspect
from mm2slo_core.pending_canaries import PendingCanaries

if TYPE_CHECKING:
    from mm2slo_core.canary_rules import CanaryRules
    from mm2slo_core.pending_canaries import PendingCanary


class Absence(NamedTuple):
    """A canary that is proven not to come: lost, or *expired* on the source before its copy."""

    sequence: int
    expired: bool


class CanaryEvidence:
    """Awaits canaries until they arrive or a position proves that they will not."""

    __slots__ = ("_awaited", "_confirm_losses", "_seen", "_suspects")

    def __init__(self, rules: CanaryRules) -> None:
        self._confirm_losses = rules.confirm_losses
        self._awaited = PendingCanaries(rules.pending_limit)
        self._suspects: dict[int, Suspect] = {}
        self._seen: dict[int, tuple[int, int]] = {}  # position and log start, by partition

    def __len__(self) -> int:
        return len(self._awaited) + len(self._suspects)

    @property
    def oldest(self) -> list[PendingCanary]:
        """The oldest awaited canary of each partition that has any; suspects are left out."""
        return self._awaited.oldest()

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Canaries that were passed, and have to be looked up before they count as lost."""
        return tuple(self._suspects.values())

    def append(self, partition: int, canary: PendingCanary) -> PendingCanary | None:
        """Await *canary*; returns the oldest one, dropped, when the limit is passed."""
        return self._awaited.append(partition, canary)

    def take(self, sequence: int, likely_partition: int) -> tuple[int, PendingCanary] | None:
        """Await it no longer: it arrived. None when it was not awaited."""
        return self._awaited.take(sequence, likely_partition)

    def clear(self, sequence: int) -> bool:
        """Suspect it no longer; False when it was not suspected."""
        return self._suspects.pop(sequence, None) is not None

    def weigh(
        self, partition: int, next_offset: int, log_start: int, *, target_read: bool
    ) -> list[Absence]:
        """What a proven position and a log start settle; see CanaryLedger.position."""
        before = self._seen.get(partition)
        self._seen[partition] = (next_offset, log_start)
        found: list[Absence] = []
        if not target_read:
            return found

        def judge(canary: PendingCanary) -> bool:
            offset = canary.source_offset
            if offset >= log_start or (before is not None and offset < before[0]):
                if self._confirm_losses:
                    suspect = Suspect(canary.sequence, partition, offset)
                    self._suspects[canary.sequence] = suspect
                else:
                    found.append(Absence(canary.sequence, expired=False))
                return True
            # Gone from the source. One sample cannot tell what came first, copy or removal.
            if before is None or not (offset < next_offset or offset < before[1]):
                return False
            found.append(Absence(canary.sequence, expired=True))
            return True

        self._awaited.take_below(partition, max(next_offset, log_start), judge)
        return found
