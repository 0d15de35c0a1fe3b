"""A lab run with every fault in it, audited, beside what is true of it."""

from audited.play import (
    APPENDED,
    CLEAN,
    COMPACTED,
    EXPIRED,
    FAULTS,
    ODD,
    REPLAY,
    STOPPED,
    TRANSACTIONS,
    US_EU,
    WIDER,
    Story,
)
from audited.tell import Told, tell

__all__ = [
    "APPENDED",
    "CLEAN",
    "COMPACTED",
    "EXPIRED",
    "FAULTS",
    "ODD",
    "REPLAY",
    "STOPPED",
    "TRANSACTIONS",
    "US_EU",
    "WIDER",
    "Story",
    "Told",
    "tell",
]
