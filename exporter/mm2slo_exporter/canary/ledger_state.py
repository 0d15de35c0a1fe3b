"""State of the canary ledger that canaries carry, so that a restart knows what was settled.

It is that of the newest scraped counters: others are lost with the process.
"""

from __future__ import annotations

from typing import NamedTuple


class LedgerState(NamedTuple):
    """All sequences below `floor` are settled; `newest_arrived` is the highest that arrived.

    Deadlines up to `settled_to` are settled.
    """

    floor: int | None = None
    newest_arrived: int | None = None
    settled_to: float | None = None


LedgerStates = dict[str, LedgerState]
"""By flow label. Written by one thread and read by others: entries are replaced as a whole."""
