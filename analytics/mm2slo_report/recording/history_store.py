"""The recorder's port to the results store. Every method raises UserError if the store fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mm2slo_core.reporting.minute_counts import Indicator, Tally
    from mm2slo_store.sli_history.rows import CounterState


class HistoryStore(Protocol):
    """Stores minutes, and the counters from which a restarted recorder continues."""

    def record_minute(
        self,
        at: int,
        tallies: Mapping[Indicator, Tally],
        seen: Collection[Indicator],
        states: Iterable[CounterState] = (),
    ) -> None:
        """Store the totals at the end of the minute that starts at *at*, in one transaction.

        Replaces the minute if it is the newest one stored.
        """

    def latest_tallies(self) -> Mapping[Indicator, Tally]:
        """The newest totals."""

    def latest_minute(self) -> int | None:
        """The newest stored minute; None: none."""

    def recorder_states(self) -> Collection[CounterState]:
        """The counters as last stored."""

    def thin(self, now: int, keep_minutes_ms: int) -> int:
        """Merge minutes older than that into hours; returns the number of hours."""

    def forget(self, before: int) -> int:
        """Delete the hours that ended by *before*; returns their number."""

    def acquire(self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int) -> None:
        """Acquire or renew a lease. Raises LeaseHeldError if another holds it."""

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Release the lease; False if another holds it."""
