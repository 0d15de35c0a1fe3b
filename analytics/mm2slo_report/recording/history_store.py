"""The recorder's port to the results store. Every method raises UserError if the store fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mm2slo_core.reporting.step_counts import Indicator, Tally
    from mm2slo_store import CounterState


KEPT_MS: Final = 400 * 86_400_000
"""How long steps are kept: a year, and the month before it."""


class HistoryStore(Protocol):
    """Stores steps, and the counters from which a restarted recorder continues."""

    def record_step(
        self, end: int, counts: Mapping[Indicator, Tally], states: Iterable[CounterState] = ()
    ) -> None:
        """Store or replace the step that ends at *end*, in one transaction with *states*."""

    def latest_step(self) -> tuple[int, Mapping[Indicator, Tally]] | None:
        """The end and the counts of the newest step; None: none."""

    def recorder_states(self) -> Collection[CounterState]:
        """The counters as last stored."""

    def forget(self, before: int) -> int:
        """Delete the steps that ended by *before*; returns their number."""

    def acquire(self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int) -> None:
        """Acquire or renew a lease. Raises LeaseHeldError if another holds it."""

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Release the lease; False if another holds it."""
