"""Which one of several services that share a store records: two would count everything twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_store.leases import LeaseHeldError

if TYPE_CHECKING:
    from mm2slo_report.recording.ports import HistoryStore

_SHORTEST_MS: Final = 60_000
_ROUNDS: Final = 3
"""That may fail before another service takes over."""
_CLUSTER: Final = "mm2slo"
_TOPIC: Final = "SLI history"
"""With a space, so that no topic is called so: a lease of the store has the name of a topic."""


class Duty:
    """The lease on the history, for *holder*: a name that a restart keeps and no other has."""

    def __init__(self, store: HistoryStore, holder: str, interval: float) -> None:
        """*interval*: seconds between two calls of `other`."""
        self._store = store
        self._holder = holder
        self._life_ms = max(_SHORTEST_MS, round(_ROUNDS * interval * 1000))

    def other(self) -> str | None:
        """Who else records; None: we do, from now on. Raises UserError."""
        try:
            self._store.acquire(_CLUSTER, _TOPIC, holder=self._holder, ttl_ms=self._life_ms)
        except LeaseHeldError as held:
            return held.holder
        return None

    def end(self) -> None:
        """Let another take over at once. Raises UserError."""
        self._store.release(_CLUSTER, _TOPIC, holder=self._holder)
