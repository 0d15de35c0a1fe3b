"""How often the bounds of a sample contain the true value of all records."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from generated_units import Drawing, Faults, Generated, generate
from reference_audit import judge

from accuracy.latency_bounds import cells_of, nearest_rank
from mm2slo_audit.audit_run import compute_stated_bounds
from mm2slo_core.audit.audit_conclusion import record_rates
from mm2slo_core.audit.confidence_bounds import Interval
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    PERCENTILES,
    UnitOutcome,
    Verdict,
    latency_percentile,
    percentile_name,
)
from mm2slo_core.records.timeline_record import Side

RATE: Final = 0.01
FAULTS: Final = Faults(
    lost=60, altered=0, moved=60, duplicate=60, out_of_order=300, identical=0, replays=(150,),
    unauditable=0, expired=0, tail=300, keys=300,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many samples had a bound that contains the true value, and one half as wide."""

    true: float
    samples: int
    inside: int
    inside_half: int
    mean_upper: float

    @property
    def share(self) -> float:
        """Share of samples inside."""
        return self.inside / self.samples


def population(faults: Faults = FAULTS) -> Generated:
    """24,000 source records, 1,200 keys; by default 1 % are lost."""
    return generate(7, partitions=4, size=6_000, faults=faults)


def true_values(generated: Generated) -> dict[str, float]:
    """By bound: the value for all records, from the simulation."""
    counts = Counter(generated.counts)
    absent = counts[Verdict.LOST] + counts[Verdict.OVERDUE]
    copied = counts[Verdict.MATCHED] + counts[Verdict.MOVED]
    on_source, on_target = (
        Counter(each.fingerprint for each in generated.records if each.side is side)
        for side in (Side.SOURCE, Side.TARGET)
    )
    again = sum(0 < sent < on_target[each] for each, sent in on_source.items())
    homes = {
        each.key_hash: each.partition for each in generated.records if each.side is Side.SOURCE
    }
    del homes[None]
    strays: defaultdict[int | None, list[bool]] = defaultdict(list)
    for each in generated.records:
        if each.side is Side.TARGET and each.key_hash in homes:
            strays[each.key_hash].append(each.partition != homes[each.key_hash])
    overtook = _count_overtaking(generated)
    latencies = sorted(generated.end_to_end)
    return {
        "loss": absent / (copied + absent),
        "duplication": again / copied,
        "moved": counts[Verdict.MOVED] / (copied + absent),
        "broken affinity": sum(map(any, strays.values())) / len(strays),
        "copies in another partition than their key": (
            sum(map(sum, strays.values())) / sum(map(len, strays.values()))
        ),
        "broken order": len(overtook) / len(homes),
        "records out of order within their key": overtook.total()
        / sum(each.side is Side.SOURCE and each.key_hash is not None for each in generated.records),
    } | {f"latency {percentile_name(q)}": nearest_rank(latencies, q) for q in PERCENTILES}


def _count_overtaking(generated: Generated) -> Counter[int]:
    """By key: records whose copy precedes that of an earlier record of the key."""
    copies: dict[tuple[int, int], int] = {}
    for each in generated.records:
        if each.side is Side.TARGET:
            copies.setdefault((each.partition, each.fingerprint), each.offset)
    newest: dict[int, int] = {}
    overtook: Counter[int] = Counter()
    for each in generated.records:
        copy = copies.get((each.partition, each.fingerprint))
        if each.side is Side.SOURCE and each.key_hash is not None and copy is not None:
            overtook[each.key_hash] += copy < newest.get(each.key_hash, 0)
            newest[each.key_hash] = max(copy, newest.get(each.key_hash, 0))
    return +overtook


def bounds(outcome: UnitOutcome, sample: Sample) -> dict[str, Interval]:
    """The bounds that an audit reports of a sample."""
    found = {
        each.name: Interval(each.lower, each.upper)
        for each in compute_stated_bounds(outcome, sample)
    }
    if moved := record_rates(outcome.counts, outcome.copied_again, census=False).get(Verdict.MOVED):
        found["moved"] = moved.interval(census=False)
    cells = cells_of(outcome, "end_to_end")
    for q in PERCENTILES:
        if bracket := latency_percentile(cells, q, sampled=True):
            found[f"latency {percentile_name(q)}"] = Interval(bracket.lower or 0.0, bracket.upper)
    return found


class BoundTally:
    """Counts samples whose bounds contain the true values."""

    def __init__(self, true: Mapping[str, float]) -> None:
        self._true = true
        self._found: defaultdict[str, list[Interval]] = defaultdict(list)

    def add(self, outcome: UnitOutcome, sample: Sample) -> None:
        """Add the outcome of one sample."""
        for what, interval in bounds(outcome, sample).items():
            self._found[what].append(interval)

    def coverage(self) -> dict[str, Coverage]:
        """The coverage of all samples that have such a bound."""
        return {
            what: Coverage(
                true,
                len(found),
                sum(each.contains(true) for each in found),
                sum(_half(each).contains(true) for each in found),
                sum(each.upper for each in found) / len(found),
            )
            for what, true in self._true.items()
            if (found := self._found[what])
        }


def coverage(generated: Generated, salts: Iterable[int]) -> dict[str, Coverage]:
    """Draw a sample for each salt, judge it in plain Python, and check its bounds."""
    tally, drawing = BoundTally(true_values(generated)), Drawing(generated.records)
    for salt in salts:
        sample = Sample(RATE, salt)
        tally.add(judge(drawing.draw(sample), generated.polls, generated.scope, sample), sample)
    return tally.coverage()


def _half(interval: Interval) -> Interval:
    quarter = (interval.upper - interval.lower) / 4
    return Interval(interval.lower + quarter, interval.upper - quarter)
