"""The lease that lets one of several report services on a store record: two would count twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_store.leases import LeaseHeldError

if TYPE_CHECKING:
    from mm2slo_report.recording.history_store import HistoryStore

_MIN_TTL_MS: Final = 60_000
_MISSED_RENEWALS: Final = 3
"""Missed renewals before another service takes over."""
_CLUSTER: Final = "mm2slo"
_TOPIC: Final = "SLI history"
"""Leases of the store are named by topics; no topic can have a space in its name."""


class RecorderLease:
    """The lease on the history for *holder*, a name that is unique and survives restarts."""

    def __init__(self, store: HistoryStore, holder: str, interval: float) -> None:
        """*interval*: seconds between two calls of `other_holder`."""
        self._store = store
        self._holder = holder
        self._ttl_ms = max(_MIN_TTL_MS, round(_MISSED_RENEWALS * interval * 1000))

    def other_holder(self) -> str | None:
        """Acquire or renew the lease; returns its holder if that is another. Raises UserError."""
        try:
            self._store.acquire(_CLUSTER, _TOPIC, holder=self._holder, ttl_ms=self._ttl_ms)
        except LeaseHeldError as held:
            return held.holder
        return None

    def release(self) -> None:
        """Release the lease. Raises UserError."""
        self._store.release(_CLUSTER, _TOPIC, holder=self._holder)
