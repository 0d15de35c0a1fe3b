"""What a unit's figures say about all its records, with confidence (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.bounds import Interval, clopper_pearson, statement
from mm2slo_core.audit.verdict import Verdict
from mm2slo_store import StatedBound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.audit.outcome import UnitOutcome
    from mm2slo_core.audit.sampling import Sample

_JUDGED: Final = (
    Verdict.MATCHED,
    Verdict.LATE,
    Verdict.LOST,
    Verdict.MOVED,
    Verdict.ALTERED,
)
"""Source records whose fate is settled: what a rate of loss is of."""


def stated_bounds(outcome: UnitOutcome, sample: Sample) -> tuple[StatedBound, ...]:
    """Loss and duplicates per record, broken affinity per key; each with its sentence.

    A census has no bound: lower and upper are its rate. Nothing is stated of nothing.
    """
    return tuple(_bounds(outcome, sample))


def _bounds(outcome: UnitOutcome, sample: Sample) -> Iterator[StatedBound]:
    counts = outcome.counts
    judged = sum(counts.get(verdict, 0) for verdict in _JUDGED)
    copied = judged - counts.get(Verdict.LOST, 0)
    again = counts.get(Verdict.DUPLICATE, 0) + counts.get(Verdict.REPLAY, 0)
    affinity = outcome.affinity
    for name, noun, events, n in (
        ("loss", "lost", counts.get(Verdict.LOST, 0), judged),
        # One record can be copied again and again; a rate is of records that were.
        ("duplication", "copied again", min(again, copied), copied),
        ("broken affinity", "keys split", affinity.keys_split, affinity.keys),
    ):
        if n <= 0:
            continue
        rate = Interval(events / n, events / n)
        bound = rate if sample.census else clopper_pearson(events, n)
        words = statement(name, events, n, noun=noun, census=sample.census)
        if name == "broken affinity":
            words = words.replace(" records", " keys")
        yield StatedBound(name, bound.lower, bound.upper, words)
