"""A lab run with every fault in it, audited, beside what is true of it."""

from audited.play import (
    APPENDED,
    BALANCED,
    CLEAN,
    COMPACTED,
    EXPIRED,
    FAULTS,
    ODD,
    REPLAY,
    STAMPED,
    STOPPED,
    TRANSACTIONS,
    US_EU,
    WIDER,
    Story,
)
from audited.tell import Told, tell

__all__ = [
    "APPENDED",
    "BALANCED",
    "CLEAN",
    "COMPACTED",
    "EXPIRED",
    "FAULTS",
    "ODD",
    "REPLAY",
    "STAMPED",
    "STOPPED",
    "TRANSACTIONS",
    "US_EU",
    "WIDER",
    "Story",
    "Told",
    "tell",
]
