"""What a unit's figures say about all its records, with confidence (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.audit.confidence_bounds import Interval, statement
from mm2slo_core.audit.key_rates import disorder_rate, moved_rate, rate_statement
from mm2slo_core.audit.record_rates import Rate, record_rates
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_store import StatedBound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.audit.key_rates import KeyRate
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome


def compute_stated_bounds(outcome: UnitOutcome, sample: Sample) -> tuple[StatedBound, ...]:
    """Loss and duplicates per record; broken affinity and order per key and per record of a key.

    Each with its sentence. A census has no bound: lower and upper are its rate. Nothing is stated
    of nothing; and of records without a key nothing but loss and duplicates.
    """
    return (*_of_records(outcome, sample), *_of_keys(outcome, sample))


def _of_records(outcome: UnitOutcome, sample: Sample) -> Iterator[StatedBound]:
    rates = record_rates(outcome.counts, census=sample.census)
    for name, noun, verdict in (
        ("loss", "lost", Verdict.LOST),
        ("duplication", "copied again", Verdict.DUPLICATE),
    ):
        if rate := rates.get(verdict):
            words = statement(name, *rate, noun=noun, census=sample.census)
            yield _stated(name, rate, words, sample)


def _of_keys(outcome: UnitOutcome, sample: Sample) -> Iterator[StatedBound]:
    affinity, census = outcome.affinity, sample.census
    if not affinity.keys:
        return
    # A seed of its own for each sample, the same whenever it is judged again.
    moved = moved_rate(affinity, census=census, seed=sample.salt)
    yield from _of_trait(_AFFINITY, affinity.keys_split, affinity.keys, moved, sample)
    if outcome.order_judged:
        disorder = disorder_rate(affinity, census=census, seed=sample.salt)
        yield from _of_trait(_ORDER, affinity.keys_disordered, affinity.keys, disorder, sample)


class _Trait(NamedTuple):
    """What can be broken of a key, in words."""

    name: str
    noun: str
    """Of keys."""
    of_records: str
    noun_of_records: str
    none: str


_AFFINITY: Final = _Trait(
    "broken affinity", "split", "records that moved partition", "moved", "none moved"
)
_ORDER: Final = _Trait(
    "broken order",
    "out of order",
    "records out of order within their key",
    "out of order",
    "none is out of order",
)


def _of_trait(
    trait: _Trait, broken: int, keys: int, rate: KeyRate | None, sample: Sample
) -> Iterator[StatedBound]:
    words = statement(trait.name, broken, keys, noun=trait.noun, census=sample.census, of="key")
    if rate is None:
        yield _stated(trait.name, Rate(broken, keys), words, sample)
        return
    nothing_seen = not rate.events and not rate.census
    if nothing_seen:
        # No interval of records follows from none: the bound of keys is all that is known.
        words += f"; of their {rate.records:,} records {trait.none}"
    yield _stated(trait.name, Rate(broken, keys), words, sample)
    if not nothing_seen:
        yield _per_record(trait, rate)


def _per_record(trait: _Trait, rate: KeyRate) -> StatedBound:
    counted = Interval(rate.rate, rate.rate)
    known = counted if rate.census else rate.interval or Interval(0.0, 1.0)
    words = rate_statement(trait.of_records, rate, noun=trait.noun_of_records)
    return StatedBound(trait.of_records, known.lower, known.upper, words)


def _stated(name: str, rate: Rate, words: str, sample: Sample) -> StatedBound:
    bound = rate.interval(census=sample.census)
    return StatedBound(name, bound.lower, bound.upper, words)
