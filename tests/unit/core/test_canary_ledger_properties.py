"""Whatever happens, in whatever order: each canary is settled once."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.canary_ledger import CanaryLedger, CanaryRules
from mm2slo_core.sli_counters import Sli, SliCount, SliKey


@dataclass(frozen=True)
class MissingVerdict:
    """What truly happens to one canary, sent a second after the one before."""

    acknowledged: bool
    copies: tuple[float, ...]
    """Delays of its arrivals; none = it never arrives."""


FATES = st.lists(
    st.builds(
        MissingVerdict,
        acknowledged=st.booleans(),
        copies=st.lists(st.floats(0.0, 200.0), max_size=3).map(lambda d: tuple(sorted(d))),
    ),
    min_size=1,
    max_size=40,
)
@given(fates=FATES, ticks=st.floats(0.5, 30.0))
def test_each_canary_is_settled_once_as_it_truly_went(fates: list[MissingVerdict], ticks: float) -> None:
    canaries = CanaryLedger(CanaryRules(own_topic=True))
    happenings: list[tuple[float, int, int]] = []
    for sequence, fate in enumerate(fates):
        happenings.append((float(sequence), 0, sequence))
        happenings.extend((sequence + delay, 1, sequence) for delay in fate.copies)
    at = 0.0
    while at < len(fates) + 300.0:
        happenings.append((at, 2, -1))
        at += ticks
    counted = canaries.counters
    for moment, kind, sequence in sorted(happenings):
        if kind == 0:
            canaries.scheduled(sequence, 0, moment)
            if fates[sequence].acknowledged:
                canaries.produced(sequence, 0, sequence, moment)
        elif kind == 1:
            canaries.arrived(sequence, 0, moment)
        else:
            canaries.tick(moment)
        after = canaries.counters
        for key, count in after.items():
            assert all(new >= old for new, old in zip(count, counted[key], strict=True))
            assert 0 <= count.good <= count.total
        counted = after
    canaries.position(0, len(fates), 0, target_read=True)

    in_time = [bool(fate.copies) and fate.copies[0] <= 60.0 for fate in fates]
    good = sum(in_time)
    known = sum(a or fate.acknowledged for a, fate in zip(in_time, fates, strict=True))
    assert canaries.counters[SliKey(Sli.AVAILABILITY)] == SliCount(good, known, len(fates) - known)
    arrived = sum(bool(fate.copies) for fate in fates)
    lost = sum(fate.acknowledged and not fate.copies for fate in fates)
    completeness = canaries.counters[SliKey(Sli.COMPLETENESS)]
    assert (completeness.good, completeness.total) == (arrived, arrived + lost)
    totals = canaries.totals
    assert (totals.received, totals.lost) == (arrived, lost)
    assert totals.duplicates == sum(max(len(fate.copies) - 1, 0) for fate in fates)
    assert canaries.pending == 0
