"""The closed list of an audit's verdicts on a record."""

from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """One per source record, and one per surplus target record."""

    MATCHED = "matched"
    """The source record has its copy in the expected partition."""
    LATE = "late"
    """Matched, but lost or overdue in an earlier run of the same window."""
    PENDING = "pending"
    """Not replicated yet: beyond the position, younger than `max_pending`."""
    OVERDUE = "overdue"
    """Not replicated yet: beyond the position, older than `max_pending`."""
    LOST = "lost"
    """The position passed the record, and the target has no copy."""
    EXPIRED = "expired-unreplicated"
    """Removed from the source before replication. Counted from offsets."""
    UNAUDITABLE = "unauditable"
    """The counterpart is gone, or the record precedes what is known of the flow."""
    MOVED = "moved"
    """The copy is in another partition."""
    ALTERED = "altered"
    """The copy has the same key and timestamp and other content."""
    UNMASKED = "unmasked"
    """A part that the flow must change arrived unchanged; an additional verdict on the record."""
    DUPLICATE = "duplicate"
    """An additional copy of a record."""
    REPLAY = "replay"
    """A duplicate in a block that was replicated again, as after a crash."""
    EXTRA = "extra"
    """A target record without a source record, from another producer."""
    OUT_OF_ORDER = "out-of-order"
    """A copy that precedes the copy of an earlier record of its source partition."""


FAULTS: Final = frozenset(
    {
        Verdict.OVERDUE,
        Verdict.LOST,
        Verdict.EXPIRED,
        Verdict.MOVED,
        Verdict.ALTERED,
        Verdict.UNMASKED,
    }
)
"""Verdicts that make a run exit with code 1. Duplicates, replays, extra and out-of-order records do
not: MirrorMaker 2 delivers at least once, and other producers may be intended."""

ADDITIONAL: Final = frozenset({Verdict.OUT_OF_ORDER, Verdict.UNMASKED})
"""Verdicts on records that have another one as well."""

UNREMARKABLE: Final = frozenset({Verdict.MATCHED, Verdict.PENDING, Verdict.UNAUDITABLE})
"""Verdicts that are no anomalies and have no evidence."""

EVIDENCED: Final = frozenset(Verdict) - UNREMARKABLE - {Verdict.EXPIRED}
"""Verdicts with evidence; expired records are only counted."""

SURPLUS: Final = frozenset({Verdict.DUPLICATE, Verdict.REPLAY, Verdict.EXTRA})
"""Verdicts on target records; unauditable is on both sides, all others on source records."""
