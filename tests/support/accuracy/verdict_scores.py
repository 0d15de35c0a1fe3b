"""Recall and precision of every verdict, summed over many units."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from fault_injection import Found, Score, named, scores

from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict

COUNTED_ONLY = frozenset({Verdict.MATCHED, Verdict.PENDING, Verdict.UNAUDITABLE, Verdict.EXPIRED})
"""Verdicts without evidence: their counts are compared instead of offsets."""


@dataclass(slots=True)
class Tally:
    """True and found verdicts over all units so far."""

    units: int = 0
    records: int = 0
    by_offset: dict[Verdict, Score] = field(default_factory=dict)
    by_count: dict[Verdict, tuple[int, int]] = field(default_factory=dict)
    """True and found."""
    differences: list[str] = field(default_factory=list)
    """Wrong counts: topic, verdict, true and found."""

    def add(
        self,
        outcome: UnitOutcome,
        truth: Mapping[Verdict, set[Found]],
        counts: Mapping[Verdict, int],
    ) -> None:
        """Add a unit: *truth* by offset, *counts* of verdicts without evidence."""
        self.add_places(truth, named(outcome.evidence))
        found = Counter(outcome.counts)
        self.records += sum(found[verdict] for verdict in Verdict)
        for verdict in COUNTED_ONLY:
            true = counts.get(verdict, 0)
            if true != found[verdict]:
                topic = outcome.scope.target_topic
                self.differences.append(f"{topic}: {verdict} {true}, {found[verdict]}")
            true_before, found_before = self.by_count.get(verdict, (0, 0))
            self.by_count[verdict] = (
                true_before + true,
                found_before + found[verdict],
            )

    def add_places(
        self, truth: Mapping[Verdict, set[Found]], found: Mapping[Verdict, set[Found]]
    ) -> None:
        """Add a unit and compare only its evidence."""
        self.units += 1
        for verdict, score in scores(truth, found).items():
            if verdict not in COUNTED_ONLY:
                so_far = self.by_offset.get(verdict, Score(0, 0, 0))
                self.by_offset[verdict] = Score(
                    so_far.true + score.true, so_far.found + score.found, so_far.both + score.both
                )

    @property
    def perfect(self) -> bool:
        """Whether all verdicts are found and correct."""
        offsets = all(each.true == each.found == each.both for each in self.by_offset.values())
        return offsets and all(true == found for true, found in self.by_count.values())
