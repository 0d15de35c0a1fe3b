"""What the ledger wants canaries to carry, so that a restart knows what was settled."""

from __future__ import annotations

from typing import NamedTuple


class Hint(NamedTuple):
    """`floor`: every lower sequence is settled; `newest_arrived`: the highest that arrived."""

    floor: int | None = None
    newest_arrived: int | None = None


Hints = dict[str, Hint]
"""By flow label. Written by one thread and read by others: entries are replaced whole."""
