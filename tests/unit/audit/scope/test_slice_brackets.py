"""Target ranges of slices, from offset syncs and from the timeline."""

from __future__ import annotations

import random

import pytest

from mm2slo_audit.scope.partition_timeline import PartitionTimeline
from mm2slo_audit.scope.slice_brackets import CopyEvidence, find_target_range
from mm2slo_audit.scope.sync_history import SyncPoint


def points(*pairs: tuple[int, int]) -> list[SyncPoint]:
    return [SyncPoint(*each, at=0.0) for each in pairs]


def known(
    *syncs: tuple[int, int],
    source: PartitionTimeline | None = None,
    target: PartitionTimeline | None = None,
    ends: tuple[int, int] = (1_000, 1_000),
    next_offset: int | None = 1_000,
) -> CopyEvidence:
    return CopyEvidence(
        points(*syncs), source, target, dense=True, ends=ends, next_offset=next_offset
    )


def timelines(
    *polls: tuple[int, int, int], interval: float = 5.0
) -> tuple[PartitionTimeline, PartitionTimeline]:
    """Source end, target end and committed offset of each poll."""
    source, target = PartitionTimeline(), PartitionTimeline()
    for number, (end, copied, committed) in enumerate(polls):
        at = number * interval
        previous = at - interval if number else None
        source.add_poll(end, at, at + 0.1, previous)
        source.add_commit(at + 0.1, committed)
        target.add_poll(copied, at + 0.2, at + 0.3, None if previous is None else previous + 0.2)
    return source, target


def test_one_to_one_syncs_give_the_copies_with_a_margin() -> None:
    found = find_target_range(200, 300, known((0, 50), (900, 950)))
    assert found == (250 - 128, 250 - 128 + 3 * 128)


def test_lost_records_widen_the_range_to_the_next_syncs() -> None:
    syncs = known((0, 0), (200, 200), (260, 250), (900, 890))
    assert find_target_range(210, 230, syncs) == (200, 250)
    # Cuts between syncs are 128 records apart.
    assert find_target_range(260, 400, syncs) == (250, 250 + 3 * 128)


def test_syncs_of_a_range_that_was_read_again_include_all_copies() -> None:
    # Up to 500 and back to 300, then on.
    syncs = known((0, 0), (500, 500), (300, 510), (900, 1_110), ends=(1_000, 1_210))
    found = find_target_range(350, 400, syncs)
    assert found is not None
    assert found[0] <= 350
    assert found[1] >= 610


def test_records_after_the_last_sync_end_at_the_end_of_the_target() -> None:
    syncs = known((0, 0), (900, 900))
    assert find_target_range(850, 950, syncs) == (850 - 128, 1_000)


def test_records_not_committed_yet_end_at_the_end_of_the_target() -> None:
    source, target = timelines((100, 100, 100), (200, 150, 100), (500, 300, 250), (1_000, 450, 300))
    evidence = known(source=source, target=target, ends=(1_000, 450), next_offset=300)
    assert find_target_range(400, 600, evidence) == (100, 450)


def test_timeline_positions_bracket_the_range() -> None:
    source, target = timelines(
        (100, 90, 50), (300, 280, 100), (500, 490, 300), (700, 690, 500), (900, 890, 700)
    )
    evidence = known(source=source, target=target)
    # 300 arrived after the second poll, when the target ended at 90: its poll was answered later.
    # 400 was committed at the fourth poll, 690 was the end after it.
    assert find_target_range(300, 400, evidence) == (90, 690)


def test_timeline_position_that_goes_back_widens_the_range() -> None:
    source, target = timelines(
        (100, 90, 50), (300, 280, 300), (500, 490, 500), (500, 500, 200), (600, 700, 600),
        (700, 790, 700), (900, 990, 800),
    )  # fmt: skip
    evidence = known(source=source, target=target)
    assert find_target_range(310, 400, evidence) == (90, 700)


def test_without_syncs_and_timeline_there_is_no_range() -> None:
    assert find_target_range(200, 300, known()) is None


def test_timeline_that_starts_later_gives_no_range() -> None:
    source, target = timelines((500, 490, 450), (700, 690, 650), (900, 890, 850))
    evidence = known(source=source, target=target)
    assert find_target_range(200, 300, evidence) is None


class Run:
    """Copies at random speed, with losses, rewinds, foreign records, syncs and polls."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.source, self.target = PartitionTimeline(), PartitionTimeline()
        self.copies: dict[int, list[int]] = {}
        self.syncs: list[SyncPoint] = []
        self.end = self.position = self.committed = self.copied = 0
        self._previous: int | None = None
        self._synced = 0
        self._polled_at: float | None = None
        at = 0.0
        while len(self.copies) < 2_000:
            at += 1.0
            self.end += self.draw.randrange(60)
            for _ in range(min(self.draw.randrange(80), self.end - self.position)):
                self._copy(at)
            if self.draw.random() < 0.2:
                self.committed = self.position
            if self.draw.random() < 0.02:
                self.position, self._previous = self.committed, None
            if self.draw.random() < 0.5:
                self._poll(at)

    def _copy(self, at: float) -> None:
        if self.draw.random() < 0.01:
            self.position += 1
            return
        if self.draw.random() < 0.005:
            self.copied += 1
        if self._previous != self.position - 1 or self.copied - self._synced >= 100:
            self.syncs.append(SyncPoint(self.position, self.copied, at))
            self._synced = self.copied
        self._previous = self.position
        self.copies.setdefault(self.position, []).append(self.copied)
        self.position, self.copied = self.position + 1, self.copied + 1

    def _poll(self, at: float) -> None:
        before = self._polled_at
        self.source.add_poll(self.end, at, at + 0.1, before)
        self.source.add_commit(at + 0.1, self.committed)
        if self.syncs:
            self.source.add_sync(self.syncs[-1]._replace(at=at))
        self.target.add_poll(self.copied, at + 0.2, at + 0.3, before and before + 0.2)
        self._polled_at = at


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("kept", ["both", "syncs", "timeline"])
def test_a_copy_is_in_the_range_whatever_was_lost_or_read_again(seed: int, kept: str) -> None:
    run = Run(seed)
    polled = kept != "syncs"
    evidence = CopyEvidence(
        syncs=() if kept == "timeline" else run.syncs,
        source=run.source if polled else None,
        target=run.target if polled else None,
        dense=True,
        ends=(run.end, run.copied),
        next_offset=run.committed,
    )
    ranges = [
        (start, find_target_range(start, start + 100, evidence))
        for start in range(0, run.end - 100, 100)
    ]
    outside = [
        offset
        for start, found in ranges
        if found is not None
        for offset in range(start, start + 100)
        if offset in run.copies
        and not any(found[0] <= copy < found[1] for copy in run.copies[offset])
    ]
    assert outside == []
    assert sum(found is not None for _start, found in ranges) >= 0.5 * len(ranges)
