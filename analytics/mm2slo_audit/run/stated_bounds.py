"""Confidence bounds of a unit's rates over all its records (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.audit.confidence_bounds import Interval, plural, statement
from mm2slo_core.audit.key_rates import disorder_rate, moved_rate, rate_statement
from mm2slo_core.audit.record_rates import ABSENT, Rate, record_rates
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_store import StatedBound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.audit.key_rates import KeyRate
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome


def compute_stated_bounds(outcome: UnitOutcome, sample: Sample) -> tuple[StatedBound, ...]:
    """Bounds of loss and duplication per record, of broken affinity and order per key and record.

    In a census both bounds are the rate. Records without a key have only loss and duplication.
    """
    return (*_of_records(outcome, sample), *_of_keys(outcome, sample))


def _of_records(outcome: UnitOutcome, sample: Sample) -> Iterator[StatedBound]:
    rates = record_rates(outcome.counts, outcome.copied_again, census=sample.census)
    lost, overdue = (outcome.counts.get(verdict, 0) for verdict in ABSENT)
    if rate := rates.get(Verdict.LOST):
        counted = f"{lost:,} lost" + (f", {overdue:,} overdue" if overdue else "")
        sentence = statement("loss", *rate, counted=counted, census=sample.census)
        yield _stated("loss", rate, sentence, sample)
    if rate := rates.get(Verdict.DUPLICATE):
        counted = f"{rate.events:,} copied again"
        sentence = statement("duplication", *rate, counted=counted, census=sample.census)
        yield _stated("duplication", rate, sentence, sample)


def _of_keys(outcome: UnitOutcome, sample: Sample) -> Iterator[StatedBound]:
    affinity, census = outcome.affinity, sample.census
    if not affinity.keys:
        return
    # The salt as seed: the same sample gives the same bounds.
    moved = moved_rate(affinity, census=census, seed=sample.salt)
    yield from _of_property(_AFFINITY, affinity.keys_split, affinity.keys, moved, sample)
    if outcome.order_judged:
        disorder = disorder_rate(affinity, census=census, seed=sample.salt)
        yield from _of_property(_ORDER, affinity.keys_disordered, affinity.keys, disorder, sample)


class _KeyProperty(NamedTuple):
    """A property of keys that can be broken, and its terms."""

    name: str
    noun: str
    """For keys."""
    of_records: str
    noun_of_records: str
    none: str


_AFFINITY: Final = _KeyProperty(
    "broken affinity", "split", "copies in another partition than their key", "copies", "none moved"
)
_ORDER: Final = _KeyProperty(
    "broken order",
    "out of order",
    "records out of order within their key",
    "out of order",
    "none out of order",
)


def _of_property(
    key_property: _KeyProperty, broken: int, keys: int, rate: KeyRate | None, sample: Sample
) -> Iterator[StatedBound]:
    sentence = statement(
        key_property.name,
        broken,
        keys,
        counted=f"{broken:,} {key_property.noun}",
        census=sample.census,
        of="key",
    )
    if rate is None:
        yield _stated(key_property.name, Rate(broken, keys), sentence, sample)
        return
    nothing_seen = not rate.events and not rate.census
    if nothing_seen:
        # Without an event there is no interval for records, only for keys.
        sentence += f"; of their {plural(rate.records, 'record')}, {key_property.none}"
    yield _stated(key_property.name, Rate(broken, keys), sentence, sample)
    if not nothing_seen:
        yield _per_record(key_property, rate)


def _per_record(key_property: _KeyProperty, rate: KeyRate) -> StatedBound:
    counted = Interval(rate.rate, rate.rate)
    known = counted if rate.census else rate.interval or Interval(0.0, 1.0)
    sentence = rate_statement(key_property.of_records, rate, noun=key_property.noun_of_records)
    return StatedBound(key_property.of_records, known.lower, known.upper, sentence)


def _stated(name: str, rate: Rate, sentence: str, sample: Sample) -> StatedBound:
    bound = rate.interval(census=sample.census)
    return StatedBound(name, bound.lower, bound.upper, sentence)
