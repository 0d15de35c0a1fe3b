"""The model of OffsetSyncStore in the tests against Kafka's, for thousands of random sequences."""

import random
import struct
from typing import Any, NamedTuple

import pytest
from offset_sync_slots import OffsetSyncStore, violated_invariants

from mm2slo_core.offset_translation import Untranslated
from mm2slo_core.records.mirror_records import OffsetSync
from mm2slo_core.topology import TopicPartition

pytestmark = pytest.mark.xdist_group("spark")

PARTITION = TopicPartition("foo", 3)
NOT_PRESENT, SKIPPED = -2, -1
CASES = 4_000


class Case(NamedTuple):
    """Syncs before and after the end of the initial read, and committed offsets to translate."""

    latest_only: bool
    before: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, int], ...]
    committed: tuple[int, ...]

    def encode(self) -> bytes:
        head = struct.pack(
            ">iiii", self.latest_only, len(self.before), len(self.after), len(self.committed)
        )
        numbers = [number for pair in (*self.before, *self.after) for number in pair]
        return head + struct.pack(
            f">{len(numbers) + len(self.committed)}q", *numbers, *self.committed
        )


def random_case(seed: int) -> Case:
    """Draw steps of very different sizes, repeated offsets, and occasional steps back."""
    dice = random.Random(seed)
    scale = 10 ** dice.randint(0, 6)
    upstream, downstream = dice.choice([0, 1, 7, 10**9, 2**62]), dice.randrange(1000)
    syncs = []
    for _ in range(dice.randint(0, 90)):
        syncs.append((upstream, downstream))
        if dice.random() < 0.05:
            continue  # the same sync again, a retried send
        step = dice.choices(
            (0, 1, dice.randint(1, scale), 100, -dice.randint(1, scale)), (1, 3, 5, 3, 0.2)
        )[0]
        upstream, downstream = max(0, upstream + step), downstream + max(1, abs(step))
    split = dice.randint(0, len(syncs))
    committed = {max(0, at + off) for at, _ in syncs for off in (-1, 0, 1, dice.randrange(scale))}
    return Case(
        latest_only=dice.random() < 0.3,
        before=tuple(syncs[:split]),
        after=tuple(syncs[split:]),
        committed=tuple(sorted(committed | {0, 2**63 - 1})),
    )


def our_results(case: Case) -> list[int]:
    store = OffsetSyncStore(latest_only=case.latest_only)
    for pair in case.before:
        store.add(OffsetSync(PARTITION, *pair))
    store.finish_initial_read()
    for pair in case.after:
        store.add(OffsetSync(PARTITION, *pair))
    return [as_kafka(store.translate_downstream(PARTITION, at)) for at in case.committed]


def as_kafka(answer: int | Untranslated) -> int:
    if isinstance(answer, Untranslated):
        return SKIPPED if answer is Untranslated.BEHIND_OLDEST_SYNC else NOT_PRESENT
    return answer


def kafka_results(probe: Any, cases: list[Case]) -> list[list[int]]:
    counts = [len(case.committed) for case in cases]
    answer = probe("translate", b"".join(case.encode() for case in cases), sum(counts))
    numbers = iter(struct.unpack(f">{sum(counts)}q", answer))
    return [[next(numbers) for _ in range(count)] for count in counts]


def test_translate_downstream_equals_kafka_for_random_sync_sequences(probe: Any) -> None:
    cases = [random_case(seed) for seed in range(CASES)]
    theirs = kafka_results(probe, cases)
    for case, expected in zip(cases, theirs, strict=True):
        assert our_results(case) == expected, case
    flat = [answer for answers in theirs for answer in answers]
    # The comparison is meaningful only if all kinds of result occur.
    assert flat.count(NOT_PRESENT) > 50
    assert flat.count(SKIPPED) > 10_000
    assert len(flat) - flat.count(NOT_PRESENT) - flat.count(SKIPPED) > 100_000


def test_translate_downstream_equals_kafka_for_long_regular_stream(probe: Any) -> None:
    syncs = tuple((at, at + 7) for at in range(0, 200_000, 101))
    case = Case(latest_only=False, before=syncs, after=(), committed=tuple(range(0, 200_200, 37)))
    assert our_results(case) == kafka_results(probe, [case])[0]


def test_add_keeps_slot_invariants() -> None:
    for seed in range(150):
        case = random_case(seed)
        store = OffsetSyncStore()
        for upstream, downstream in case.before + case.after:
            store.add(OffsetSync(PARTITION, upstream, downstream))
            slots = store.slots(PARTITION)
            assert not violated_invariants(slots, slots[0])
            assert slots[0] == (upstream, downstream)
