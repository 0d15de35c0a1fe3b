"""Invariants of CanaryLedger, by name, for random sequences of events."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.canary_ledger import CanaryLedger
from mm2slo_core.indicators.canary_rules import CanaryRules
from mm2slo_core.indicators.sli_counters import Sli, SliCount, SliKey


@dataclass(frozen=True)
class TrueOutcome:
    """What happens to one canary, sent a second after its predecessor."""

    acknowledged: bool
    copies: tuple[float, ...]
    """Delays of its arrivals; empty: it never arrives."""


OUTCOMES = st.lists(
    st.builds(
        TrueOutcome,
        acknowledged=st.booleans(),
        copies=st.lists(st.floats(0.0, 200.0), max_size=3).map(lambda d: tuple(sorted(d))),
    ),
    min_size=1,
    max_size=40,
)


@given(outcomes=OUTCOMES, ticks=st.floats(0.5, 30.0))
def test_ledger_keeps_its_invariants_and_finds_the_true_outcomes(
    outcomes: list[TrueOutcome], ticks: float
) -> None:
    canaries = CanaryLedger(CanaryRules(own_topic=True))
    events: list[tuple[float, int, int]] = []
    for sequence, outcome in enumerate(outcomes):
        events.append((float(sequence), 0, sequence))
        events.extend((sequence + delay, 1, sequence) for delay in outcome.copies)
    at = 0.0
    while at < len(outcomes) + 300.0:
        events.append((at, 2, -1))
        at += ticks
    counted = canaries.counters
    waiting: set[int] = set()
    """Known to be on the source, without an arrival yet."""
    for moment, kind, sequence in sorted(events):
        if kind == 0:
            canaries.scheduled(sequence, 0, moment)
            if outcomes[sequence].acknowledged:
                canaries.produced(sequence, 0, sequence, moment)
                waiting.add(sequence)
        elif kind == 1:
            canaries.arrived(sequence, 0, moment)
            waiting.discard(sequence)
        else:
            canaries.tick(moment)
        after = canaries.counters
        for key, count in after.items():
            assert all(new >= old for new, old in zip(count, counted[key], strict=True)), "A"
            assert 0 <= count.good <= count.total, "A"
        assert canaries.totals.lost == canaries.totals.expired == 0, "C: lost by time alone"
        assert canaries.floor <= min(waiting, default=len(outcomes)), "D"
        counted = after
    canaries.position(0, len(outcomes), 0, target_read=True)

    in_time = [bool(outcome.copies) and outcome.copies[0] <= 60.0 for outcome in outcomes]
    good = sum(in_time)
    known = sum(a or outcome.acknowledged for a, outcome in zip(in_time, outcomes, strict=True))
    assert canaries.counters[SliKey(Sli.AVAILABILITY)] == SliCount(
        good, known, len(outcomes) - known
    ), "B"
    arrived = sum(bool(outcome.copies) for outcome in outcomes)
    lost = sum(outcome.acknowledged and not outcome.copies for outcome in outcomes)
    completeness = canaries.counters[SliKey(Sli.COMPLETENESS)]
    assert (completeness.good, completeness.total) == (arrived, arrived + lost), "A and C"
    totals = canaries.totals
    assert (totals.received, totals.lost) == (arrived, lost)
    assert totals.duplicates == sum(max(len(outcome.copies) - 1, 0) for outcome in outcomes)
    assert (canaries.pending, canaries.floor) == (0, len(outcomes)), "D"
