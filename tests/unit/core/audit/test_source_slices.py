"""Slices of source offsets: drawing and judging them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from generated_units import Faults, generate
from sliced_units import judge_slices, sliced

from mm2slo_core.audit.record_sample import Sample, SampleBy
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.reference import judge
from mm2slo_core.audit.source_slices import OffsetRange, plan_slices
from mm2slo_core.user_errors import UserError

SLICES = SampleBy.SLICES
FAULTS = Faults(
    lost=40, altered=0, moved=0, duplicate=60, out_of_order=50, identical=0, replays=(150,),
    unauditable=0, expired=12, tail=100, keys=300,
)  # fmt: skip


def sample(rate: float = 0.01, slice_bytes: int = 1_000, salt: int = 0) -> Sample:
    return Sample(rate, salt, SLICES, slice_bytes)


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(number, 50, 50 + size) for number, size in enumerate(sizes)]


def test_plan_slices_draws_one_in_every_hundred_of_equal_size() -> None:
    drawn = plan_slices("orders", ranges(2_000_000, 3_000_000), 1.0, sample())
    sizes = Counter[int]()
    for each in drawn:
        sizes[each.number] += each.end - each.start
    # At most 18 of the larger partition, so that there are 30.
    assert set(sizes.values()) == {1_666}
    assert len(sizes) == 30


def test_plan_slices_has_at_most_ten_slices_of_a_partition() -> None:
    drawn = plan_slices("orders", ranges(*[1_000_000] * 6), 10.0, sample())
    of_partition = Counter(each.partition for each in drawn)
    # A slice across the end of a partition has a part in each.
    assert set(of_partition.values()) <= {10, 11}
    assert len({each.number for each in drawn}) == 60


def test_plan_slices_same_salt_draws_the_same_slices() -> None:
    first, again, other = (
        plan_slices("orders", ranges(900_000), 10.0, sample(salt=salt)) for salt in (1, 1, 2)
    )
    assert first == again != other


def test_plan_slices_every_offset_is_equally_likely() -> None:
    hits = Counter[tuple[int, int]]()
    for salt in range(2_000):
        for each in plan_slices("orders", ranges(700, 2_300), 1.0, sample(0.25, 20, salt)):
            hits.update((each.partition, offset) for offset in range(each.start, each.end))
    assert len(hits) == 3_000
    assert all(400 < count < 600 for count in hits.values())


def test_plan_slices_too_few_are_refused_with_the_share_that_is_needed() -> None:
    with pytest.raises(UserError) as refused:
        plan_slices("orders", ranges(1_000_000), 100.0, Sample(0.01, 0, SLICES, 100_000))
    assert str(refused.value) == (
        "orders has 10 slices of 0.1 MB in a sample of 1%; expected at least 30: use"
        " --sample 3%, a longer window or --sample-by hash"
    )
    needed = Sample(0.03, 0, SLICES, 100_000)
    drawn = plan_slices("orders", ranges(1_000_000), 100.0, needed)
    assert len({each.number for each in drawn}) >= 30


def test_plan_slices_topic_smaller_than_thirty_slices_is_read_completely() -> None:
    assert plan_slices("orders", ranges(1_000), 100.0, Sample(0.01, 0, SLICES)) == ()
    assert plan_slices("orders", (), 1.0, Sample(0.01, 0, SLICES)) == ()


def test_sample_by_slices_above_half_is_a_census() -> None:
    assert Sample(0.6, by=SLICES).census
    assert not Sample(0.6, by=SLICES).sliced
    assert Sample(0.3, by=SLICES).share == pytest.approx(1 / 3)


@pytest.mark.parametrize("salt", range(3))
def test_slices_count_their_faults_exactly(salt: int) -> None:
    unit = generate(7 + salt, partitions=4, size=6_000, faults=FAULTS)
    scope = sliced(unit, sample(0.2, 50, salt), margin=30)
    whole = judge(unit.records, unit.polls, unit.scope, Sample(1.0))
    outcome = judge_slices(scope, unit.records, unit.polls)
    drawn = {
        (each.partition, offset) for each in scope.slices for offset in range(each.start, each.end)
    }
    for verdict in (Verdict.LOST, Verdict.OVERDUE):
        expected = {
            (each.partition, each.offset)
            for each in whole.evidence
            if each.verdict is verdict and (each.partition, each.offset) in drawn
        }
        found = {
            (each.partition, each.offset) for each in outcome.evidence if each.verdict is verdict
        }
        assert found == expected
        assert outcome.counts.get(verdict, 0) == len(expected)
    assert outcome.counts[Verdict.LOST] > 0
    assert Verdict.EXTRA not in outcome.counts
    assert outcome.counts[Verdict.EXPIRED] == whole.counts[Verdict.EXPIRED] == 48
    assert outcome.slices == len({each.number for each in scope.slices}) >= 30
    judged_records = sum(
        count
        for verdict, count in outcome.counts.items()
        if verdict in {Verdict.MATCHED, Verdict.LOST, Verdict.OVERDUE, Verdict.PENDING}
    )
    assert judged_records == len(drawn)


def test_slice_without_target_range_is_unauditable() -> None:
    unit = generate(7, partitions=4, size=6_000, faults=FAULTS)
    scope = sliced(unit, sample(0.2, 50), margin=30)
    assert scope.sampled is not None
    first, *others = scope.slices
    hidden = replace(
        scope, sampled=replace(scope.sampled, slices=(first._replace(target=None), *others))
    )
    before, after = (judge_slices(each, unit.records, unit.polls) for each in (scope, hidden))
    assert after.counts[Verdict.UNAUDITABLE] == first.end - first.start
    assert after.counts[Verdict.LOST] <= before.counts[Verdict.LOST]
    assert after.slices == before.slices - 1
