"""The true verdicts on a topic, and scores of an audit against them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fault_injection.stored_records import Place
from mm2slo_core.audit.unit_outcome import Evidence, Verdict
from mm2slo_core.records.timeline_record import Side


class Found(NamedTuple):
    """A record with a verdict."""

    side: Side
    partition: int
    offset: int


@dataclass(slots=True)
class Truth:
    """Records by verdict, and the target counterparts of moved and altered records."""

    places: defaultdict[Verdict, set[Found]] = field(default_factory=lambda: defaultdict(set))
    counterparts: dict[Found, Place] = field(default_factory=dict)

    def add(self, verdict: Verdict, side: Side, places: Iterable[Place]) -> None:
        """Add *places* of one side with *verdict*."""
        self.places[verdict] |= {Found(side, *place) for place in places}

    def named(self) -> dict[Verdict, set[Found]]:
        """Records by verdict, without empty verdicts."""
        return {verdict: set(found) for verdict, found in self.places.items() if found}

    def counts(self) -> dict[Verdict, int]:
        """Number of records per verdict, without zeros."""
        return {verdict: len(found) for verdict, found in self.places.items() if found}


def named(evidence: Iterable[Evidence]) -> dict[Verdict, set[Found]]:
    """Records by verdict in an audit's evidence; asserts that none occurs twice."""
    found: defaultdict[Verdict, list[Found]] = defaultdict(list)
    for each in evidence:
        found[each.verdict].append(Found(each.side, each.partition, each.offset))
    twice = [place for places in found.values() for place, n in Counter(places).items() if n > 1]
    assert not twice, f"named more than once: {twice[:5]}"
    return {verdict: set(places) for verdict, places in found.items()}


def counterparts(evidence: Iterable[Evidence]) -> dict[Found, tuple[int | None, int | None]]:
    """Counterparts of moved and altered records in an audit's evidence."""
    return {
        Found(each.side, each.partition, each.offset): (each.other_partition, each.other_offset)
        for each in evidence
        if each.other_offset is not None
    }


@dataclass(frozen=True, slots=True)
class Score:
    """Recall and precision of one verdict."""

    true: int
    found: int
    both: int

    @property
    def recall(self) -> float:
        """Share of true records that were found; 1 without true records."""
        return self.both / self.true if self.true else 1.0

    @property
    def precision(self) -> float:
        """Share of found records that are true; 1 if none were found."""
        return self.both / self.found if self.found else 1.0


def scores(
    truth: Mapping[Verdict, set[Found]], found: Mapping[Verdict, set[Found]]
) -> dict[Verdict, Score]:
    """The score of each verdict in *truth* or *found*."""
    return {
        verdict: Score(
            true=len(truth.get(verdict, ())),
            found=len(found.get(verdict, ())),
            both=len(truth.get(verdict, set()) & found.get(verdict, set())),
        )
        for verdict in sorted({*truth, *found})
    }
