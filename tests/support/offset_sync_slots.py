"""Kafka's `OffsetSyncStore` in Python, and its invariants; tests/spec compares both."""

from collections.abc import Sequence
from typing import NamedTuple

from mm2slo_core.offset_translation import Untranslated
from mm2slo_core.records.mirror_records import OffsetSync
from mm2slo_core.topology import TopicPartition

SLOTS = 64
_LAST = SLOTS - 1
# Distances between neighbours that invariants B (with b = a + 1) and C of `OffsetSyncStore` allow.
_FARTHEST = tuple(1 << slot for slot in range(SLOTS))
_CLOSEST = tuple(1 << max(slot - 2, 0) for slot in range(SLOTS))


class SyncPoint(NamedTuple):
    """The offsets of one source record and its copy."""

    upstream: int
    downstream: int


class OffsetSyncStore:
    """Syncs of all partitions of one flow, kept and translated as MirrorMaker 2 does.

    Algorithm: Kafka's class of the same name (4.1; variable spacing since KAFKA-15202, history kept
    over a restart since KAFKA-15905).

    For each source partition 64 slots hold syncs, newest first, with growing distances. Invariants,
    with Kafka's letters, up(n) for the upstream offset of slot n, and slots a < b that hold
    different syncs:
    A. Slot 0 holds the newest sync.
    B. up(a) <= up(b) + 2^b - 2^a: slots are not too far apart.
    C. up(a) >= up(b) + 2^max(a-2, 0): nor too close, so that 64 slots reach far back.
    D. Slot 63 holds the oldest sync that may be used for translation.

    A sync whose upstream offset is below slot 0 clears all slots (the source was replayed). C does
    not hold for two syncs of the same upstream offset, which Kafka keeps side by side.

    *latest_only* is MirrorMaker 2 after a restart without checkpoints (and any version before
    3.7.1): of the syncs in the topic at the start, it uses only the newest per partition.
    """

    def __init__(self, *, latest_only: bool = False) -> None:
        self._latest_only = latest_only
        self._read_to_end = False
        self._slots: dict[TopicPartition, list[SyncPoint]] = {}

    def add(self, sync: OffsetSync) -> None:
        """Add the next record of the offset syncs topic, in the order of the topic."""
        # A new object each time: Kafka compares syncs by identity, and so do the slots.
        point = SyncPoint(sync.upstream_offset, sync.downstream_offset)
        slots = self._slots.get(sync.topic_partition)
        if slots is None:
            self._slots[sync.topic_partition] = [point] * SLOTS
        elif point.upstream < slots[0].upstream or (self._latest_only and not self._read_to_end):
            slots[:] = [point] * SLOTS
        else:
            _insert(slots, point)

    def finish_initial_read(self) -> None:
        """State that the topic has been read to its end once."""
        self._read_to_end = True

    def translate_downstream(
        self, partition: TopicPartition, upstream_offset: int
    ) -> int | Untranslated:
        """Translate a committed offset of a source *partition* to the target.

        The result is the nearest sync at or below it, plus one unless they are equal.
        """
        slots = self._slots.get(partition)
        if slots is None:
            return Untranslated.NO_SYNC
        for point in slots:
            if point.upstream <= upstream_offset:
                # At most one beyond the sync, however far the commit is: records in between may be
                # missing on the target, and a checkpoint must never skip one (KAFKA-12468).
                return point.downstream + (point.upstream != upstream_offset)
        return Untranslated.BEHIND_OLDEST_SYNC

    def slots(self, partition: TopicPartition) -> Sequence[SyncPoint]:
        """Return the 64 slots of *partition*, newest first; empty without a sync."""
        return tuple(self._slots.get(partition, ()))


def _insert(slots: list[SyncPoint], newest: SyncPoint) -> None:
    """Put *newest* into slot 0 (A) and shift older syncs as far as B and C require.

    Kafka's `updateExistingSyncs`: the oldest sync is the last to be dropped, which keeps D.
    """
    before = slots.copy()
    slots[0] = carried = newest
    reading = 0
    for slot in range(1, SLOTS):
        nearer = slots[slot - 1]
        if _near_enough(nearer, slots[slot], slot - 1):
            return
        # The oldest earlier sync that keeps B and C on both sides moves here; repeated ones and
        # those too close are skipped. Without one, the last that moved is repeated.
        searching = True
        while searching:
            old = before[reading]
            far = _far_enough(nearer, old, slot - 1)
            fits = (
                far
                and _near_enough(nearer, old, slot - 1)
                and (slot == _LAST or _far_enough(old, slots[slot + 1], slot))
            )
            if fits:
                carried = old
            passed = not far or (reading < _LAST and old is before[reading + 1])
            if fits or passed:
                reading += 1
            searching = passed and reading < slot
        slots[slot] = carried


def _near_enough(newer: SyncPoint, older: SyncPoint, slot: int) -> bool:
    return newer is older or newer.upstream <= older.upstream + _FARTHEST[slot]


def _far_enough(newer: SyncPoint, older: SyncPoint, slot: int) -> bool:
    return newer is older or newer.upstream >= older.upstream + _CLOSEST[slot]


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
