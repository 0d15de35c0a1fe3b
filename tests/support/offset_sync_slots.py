"""The invariants of `OffsetSyncStore`, by Kafka's letters, for tests of its slots."""

from collections.abc import Sequence

from mm2slo_core.offset_translation import SyncPoint


def violated_invariants(slots: Sequence[SyncPoint], newest: SyncPoint) -> list[str]:
    """Return the invariants that *slots* violate after *newest* was added."""
    violated = [] if slots[0] == newest else ["A: slot 0 is not the newest sync"]
    for near, newer in enumerate(slots):
        for far in range(near + 1, len(slots)):
            older = slots[far]
            distance = newer.upstream - older.upstream
            if newer is older or distance == 0:
                continue
            if distance > (1 << far) - (1 << near):
                violated.append(f"B: slots {near} and {far} are {distance} apart")
            if distance < 1 << max(near - 2, 0):
                violated.append(f"C: slots {near} and {far} are only {distance} apart")
    if min(slots) != slots[-1]:
        violated.append("D: the last slot is not the oldest sync")
    return violated
