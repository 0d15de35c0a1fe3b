"""The closed list of what an audit says about a record."""

from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """One word per record; a source record has one, a surplus target record has one."""

    MATCHED = "matched"
    """The source record has its copy, in the partition it belongs to."""
    LATE = "late"
    """Matched now, but lost or overdue by an earlier run of the same window."""
    PENDING = "pending"
    """Not copied yet, and not due: beyond the position, younger than the patience."""
    OVERDUE = "overdue"
    """Not copied yet, beyond the position, older than the patience."""
    LOST = "lost"
    """The flow went past it, and the target has no copy."""
    EXPIRED = "expired-unreplicated"
    """Gone from the source before it was copied. Counted from offsets."""
    UNAUDITABLE = "unauditable"
    """Not to be judged: its counterpart is gone, or precedes what is known of the flow."""
    MOVED = "moved"
    """The copy is in another partition."""
    ALTERED = "altered"
    """Same key and timestamp, other content."""
    DUPLICATE = "duplicate"
    """A further copy of a record that has one."""
    REPLAY = "replay"
    """A duplicate within a block that was copied again, as after a crash."""
    EXTRA = "extra"
    """A target record that no source record explains: another writer."""
    OUT_OF_ORDER = "out-of-order"
    """A copy that precedes, on the target, the copy of an earlier record of its partition."""


FAULTS: Final = frozenset(
    {
        Verdict.OVERDUE,
        Verdict.LOST,
        Verdict.EXPIRED,
        Verdict.MOVED,
        Verdict.ALTERED,
    }
)
"""What makes a run end with exit code 1. Duplicates, replays, extras and disorder are findings:
MirrorMaker 2 promises at least once, and other writers may be intended."""

UNREMARKABLE: Final = frozenset({Verdict.MATCHED, Verdict.PENDING, Verdict.UNAUDITABLE})
"""No anomalies: no evidence is kept of them."""

EVIDENCED: Final = frozenset(Verdict) - UNREMARKABLE - {Verdict.EXPIRED}
"""Those whose records are named in the evidence; expired ones are gone, and only counted."""

SURPLUS: Final = frozenset({Verdict.DUPLICATE, Verdict.REPLAY, Verdict.EXTRA})
"""Verdicts on target records; all others (but unauditable, which is on both) are on source ones."""
