"""Translation of committed offsets; tests/spec compares it with Kafka's own class."""

from itertools import pairwise

import pytest
from offset_sync_slots import violated_invariants

from mm2slo_core.offset_translation import (
    OffsetSyncStore,
    SyncPoint,
    Untranslated,
)
from mm2slo_core.records.mirror_records import OffsetSync
from mm2slo_core.topology import TopicPartition

FOO = TopicPartition("foo", 0)


def store_with(*syncs: tuple[int, int], latest_only: bool = False) -> OffsetSyncStore:
    store = OffsetSyncStore(latest_only=latest_only)
    for sync in syncs:
        store.add(OffsetSync(FOO, *sync))
    store.finish_initial_read()
    return store


def test_translation_before_initial_read_is_not_read_yet() -> None:
    store = OffsetSyncStore()
    store.add(OffsetSync(FOO, 100, 200))
    assert store.translate_downstream(FOO, 100) is Untranslated.NOT_READ_YET
    store.finish_initial_read()
    assert store.translate_downstream(FOO, 100) == 200


@pytest.mark.parametrize(
    ("committed", "expected"),
    [
        (99, Untranslated.BEHIND_OLDEST_SYNC),
        (100, 200),
        (101, 201),
        (150, 201),
        (151, 260),
        (10_000, 261),
    ],
)
def test_translation_is_at_most_one_past_its_sync(
    committed: int, expected: int | Untranslated
) -> None:
    assert store_with((100, 200), (151, 260)).translate_downstream(FOO, committed) == expected


def test_translation_of_unknown_partition_is_no_sync() -> None:
    assert store_with().translate_downstream(FOO, 5) is Untranslated.NO_SYNC
    store = store_with((1, 1))
    store.remove(FOO)
    assert store.translate_downstream(FOO, 5) is Untranslated.NO_SYNC


def test_latest_only_uses_newest_sync_of_initial_read() -> None:
    syncs = ((0, 0), (100, 100), (200, 200))
    assert store_with(*syncs).translate_downstream(FOO, 50) == 1
    latest = store_with(*syncs, latest_only=True)
    assert latest.translate_downstream(FOO, 150) is Untranslated.BEHIND_OLDEST_SYNC
    latest.add(OffsetSync(FOO, 300, 300))
    assert latest.translate_downstream(FOO, 250) == 201


def test_add_with_lower_upstream_offset_clears_slots() -> None:
    store = store_with((0, 0), (1000, 1000), (400, 1100))
    assert store.translate_downstream(FOO, 399) is Untranslated.BEHIND_OLDEST_SYNC
    assert store.translate_downstream(FOO, 1000) == 1101
    assert set(store.slots(FOO)) == {(400, 1100)}


def test_slots_are_spaced_with_growing_distances() -> None:
    store = store_with(*((at, at) for at in range(0, 100_001, 100)))
    assert not violated_invariants(store.slots(FOO), SyncPoint(100_000, 100_000))
    kept = sorted({point.upstream for point in store.slots(FOO)}, reverse=True)
    distances = [100_000 - upstream for upstream in kept]
    assert len(kept) == 11
    assert all(far <= 4 * near for near, far in pairwise(distances[1:]))


def test_violated_invariants_are_named() -> None:
    good = [SyncPoint(10, 10)] + [SyncPoint(9, 9)] * 63
    assert not violated_invariants(good, SyncPoint(10, 10))
    assert violated_invariants(good, SyncPoint(11, 11)) == ["A: slot 0 is not the newest sync"]
    far = [SyncPoint(10, 10)] + [SyncPoint(2, 2)] * 63
    assert violated_invariants(far, far[0])[0] == "B: slots 0 and 1 are 8 apart"
