"""Canaries past their deadline, and the evidence that one is lost or expired."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.canary_rules import Suspect
from mm2slo_core.pending_canaries import PendingCanaries

if TYPE_CHECKING:
    from mm2slo_core.canary_rules import CanaryRules
    from mm2slo_core.pending_canaries import PendingCanary


class Absence(NamedTuple):
    """A canary that will not arrive: lost, or *expired* on the source before replication."""

    sequence: int
    expired: bool


class CanaryEvidence:
    """Keeps pending canaries until they arrive or a position proves that they will not."""

    __slots__ = ("_confirm_losses", "_pending", "_seen", "_suspects")

    def __init__(self, rules: CanaryRules) -> None:
        self._confirm_losses = rules.confirm_losses
        self._pending = PendingCanaries(rules.pending_limit)
        self._suspects: dict[int, Suspect] = {}
        self._seen: dict[int, tuple[int, int]] = {}  # position and log start, by partition

    def __len__(self) -> int:
        return len(self._pending) + len(self._suspects)

    @property
    def oldest(self) -> list[PendingCanary]:
        """The oldest pending canary of each partition, without suspects."""
        return self._pending.oldest()

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Canaries that the position has passed, to look up before they count as lost."""
        return tuple(self._suspects.values())

    def append(self, partition: int, canary: PendingCanary) -> PendingCanary | None:
        """Add *canary*; beyond the limit the oldest one is dropped and returned."""
        return self._pending.append(partition, canary)

    def take(self, sequence: int, likely_partition: int) -> tuple[int, PendingCanary] | None:
        """Remove and return a canary that arrived; None if it was not pending."""
        return self._pending.take(sequence, likely_partition)

    def clear(self, sequence: int) -> bool:
        """Remove a suspect; False if it was none."""
        return self._suspects.pop(sequence, None) is not None

    def drain(self) -> list[int]:
        """Remove all canaries and positions, which are of a deleted topic; their sequences."""
        drained = sorted([*self._suspects, *self._pending.drain()])
        self._suspects.clear()
        self._seen.clear()
        return drained

    def settle_by_position(
        self, partition: int, next_offset: int, log_start: int, *, target_read: bool
    ) -> list[Absence]:
        """Return the canaries settled by a position and log start; see CanaryLedger.position."""
        before = self._seen.get(partition)
        self._seen[partition] = (next_offset, log_start)
        found: list[Absence] = []
        if not target_read:
            return found

        def settle(canary: PendingCanary) -> bool:
            offset = canary.source_offset
            if offset >= log_start or (before is not None and offset < before[0]):
                if self._confirm_losses:
                    suspect = Suspect(canary.sequence, partition, offset)
                    self._suspects[canary.sequence] = suspect
                else:
                    found.append(Absence(canary.sequence, expired=False))
                return True
            # Removed from the source. One sample cannot distinguish replication from removal first.
            if before is None or not (offset < next_offset or offset < before[1]):
                return False
            found.append(Absence(canary.sequence, expired=True))
            return True

        self._pending.take_below(partition, max(next_offset, log_start), settle)
        return found
