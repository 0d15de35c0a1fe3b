"""How often the bounds of a sample contain the true rate of all records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from generated_units import Drawing, Faults, Generated, generate

from mm2slo_core.audit.confidence_bounds import clopper_pearson
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.reference import judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.audit.unit_outcome import UnitOutcome

RATE: Final = 0.01
_FAULTS: Final = Faults(
    lost=60, moved=60, duplicate=60, replays=(150,), unauditable=0, expired=0, tail=0, keys=300
)
_SOURCE: Final = (Verdict.MATCHED, Verdict.LOST, Verdict.ALTERED, Verdict.MOVED)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Events among the records of a sample or a census."""

    events: int
    n: int

    @property
    def rate(self) -> float:
        """Share of events."""
        return self.events / self.n


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of *salts* samples had bounds that contain the true rate."""

    salts: int
    inside: int
    true: float
    mean_n: float

    @property
    def share(self) -> float:
        """Share of samples inside."""
        return self.inside / self.salts


def population() -> Generated:
    """24,000 source records with a loss of 1 %, 1,200 keys."""
    return generate(7, partitions=4, size=6_000, faults=_FAULTS)


def truths(generated: Generated) -> dict[str, Drawn]:
    """Events in all records, from the simulation."""
    counts = generated.counts
    source = sum(counts[verdict] for verdict in _SOURCE)
    key = {(each.side, each.partition, each.offset): each.key_hash for each in generated.records}
    split = {key[place] for place in generated.truth.places[Verdict.MOVED]}
    sides = Counter(
        found for found in {(each.side, each.key_hash) for each in generated.records} if found[1]
    )
    keys = Counter(key_hash for _, key_hash in sides)
    both = {key_hash for key_hash, count in keys.items() if count == 2}
    duplicates = counts[Verdict.DUPLICATE] + counts[Verdict.REPLAY]
    return {
        "loss": Drawn(counts[Verdict.LOST], source),
        "duplicates": Drawn(duplicates, source),
        "keys split": Drawn(len(split & both), len(both)),
    }


def drawn(outcome: UnitOutcome) -> dict[str, Drawn]:
    """Events in a sample."""
    counts = outcome.counts
    source = sum(counts.get(verdict, 0) for verdict in _SOURCE)
    duplicates = counts.get(Verdict.DUPLICATE, 0) + counts.get(Verdict.REPLAY, 0)
    return {
        "loss": Drawn(counts.get(Verdict.LOST, 0), source),
        "duplicates": Drawn(duplicates, source),
        "keys split": Drawn(outcome.affinity.keys_split, outcome.affinity.keys),
    }


class Tally:
    """Counts samples whose bounds contain the true rates."""

    def __init__(self, true: dict[str, Drawn]) -> None:
        self._true = true
        self._samples = 0
        self._inside: Counter[str] = Counter()
        self._looked_at: Counter[str] = Counter()

    def add(self, outcome: UnitOutcome) -> None:
        """Add the outcome of one sample."""
        self._samples += 1
        for what, found in drawn(outcome).items():
            # Without records the bounds are 0 and 1.
            true = self._true[what].rate
            holds = not found.n or clopper_pearson(found.events, found.n).contains(true)
            self._inside[what] += holds
            self._looked_at[what] += found.n

    def coverage(self) -> dict[str, Coverage]:
        """The coverage of all samples."""
        return {
            what: Coverage(
                self._samples, self._inside[what], true.rate, self._looked_at[what] / self._samples
            )
            for what, true in self._true.items()
        }


def coverage(generated: Generated, salts: Iterable[int]) -> dict[str, Coverage]:
    """Draw a sample for each salt, judge it in plain Python, and check its bounds."""
    tally, drawing = Tally(truths(generated)), Drawing(generated.records)
    for salt in salts:
        sample = Sample(RATE, salt)
        tally.add(judge(drawing.draw(sample), (), generated.scope, sample))
    return tally.coverage()
