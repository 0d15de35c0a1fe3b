"""What the recorder asks of the results store. Every method raises UserError when that refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mm2slo_core.reporting.history import Indicator, Tally
    from mm2slo_store.sli_history.rows import CounterState


class HistoryStore(Protocol):
    """Where minutes are kept, and the counters from which a recorder that restarts goes on."""

    def record_minute(
        self,
        at: int,
        tallies: Mapping[Indicator, Tally],
        seen: Collection[Indicator],
        states: Iterable[CounterState] = (),
    ) -> None:
        """Keep how all stood at the end of the minute that starts at *at*; all or nothing.

        The newest minute may come again, and replaces what was kept of it.
        """

    def latest_tallies(self) -> Mapping[Indicator, Tally]:
        """The newest totals."""

    def latest_minute(self) -> int | None:
        """The newest minute that was kept."""

    def recorder_states(self) -> Collection[CounterState]:
        """The counters as they were kept last."""

    def thin(self, now: int, keep_minutes_ms: int) -> int:
        """Keep by the hour what is older than that."""

    def forget(self, before: int) -> int:
        """Drop the hours that ended by *before*."""

    def acquire(self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int) -> None:
        """Take or extend a lease. Raises LeaseHeldError when another holds it."""

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Give it back."""
