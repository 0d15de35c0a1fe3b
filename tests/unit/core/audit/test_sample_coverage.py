"""Coverage of the confidence bounds of 1 % samples, from 2,000 samples."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import replace
from struct import pack
from typing import TYPE_CHECKING

import pytest
from injected_records import Fault, Plan, Step, inject
from xxhash import xxh64_intdigest

from mm2slo_core.audit.confidence_bounds import clopper_pearson
from mm2slo_core.audit.fingerprint import SEED
from mm2slo_core.audit.record_sample import STEPS, Sample
from mm2slo_core.audit.record_verdict import SURPLUS, Verdict
from mm2slo_core.audit.reference import judge
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from injected_records import Injected

    from mm2slo_core.audit.audit_record import AuditRecord

RECORDS, KEYS = 20_000, 10_000
SALTS = 2_000
RATE = 0.01


def population() -> Injected:
    draw = random.Random(11)
    chosen = draw.choices(
        (Fault.NONE, Fault.DROP, Fault.DUPLICATE, Fault.MOVE),
        weights=(960, 10, 15, 15),
        k=RECORDS,
    )
    steps = (Step(0, 0, number % KEYS, fault) for number, fault in enumerate(chosen))
    return inject(Plan(tuple(steps), cooling=0))


class Drawing:
    """Draw the sample of each salt, without calling `Sample` for each record."""

    def __init__(self, records: Iterable[AuditRecord]) -> None:
        self._records = list(records)
        self._contents: defaultdict[int, list[int]] = defaultdict(list)
        self._keys: defaultdict[int, list[int]] = defaultdict(list)
        for at, record in enumerate(self._records):
            self._contents[record.fingerprint].append(at)
            if record.key_hash is not None:
                self._keys[record.key_hash].append(at)
        self._packed = [
            [(pack("<q", each), places) for each, places in column.items()]
            for column in (self._contents, self._keys)
        ]

    def draw(self, sample: Sample) -> Iterator[AuditRecord]:
        seed = xxh64_intdigest(pack("<q", sample.salt), SEED)
        in_records, in_keys = (
            {
                at
                for content, places in column
                if xxh64_intdigest(content, seed) % STEPS < sample.record_threshold
                for at in places
            }
            for column in self._packed
        )
        for at in in_records | in_keys:
            yield replace(self._records[at], in_records=at in in_records, in_keys=at in in_keys)


@pytest.mark.long
def test_bounds_of_1_percent_samples_cover_truth_in_94_percent() -> None:
    started = time.monotonic()
    made = population()
    truth = made.truth
    drawing = Drawing(made.records)
    checked = Sample(RATE, salt=77)
    assert {(r.fingerprint, r.key_hash) for r in drawing.draw(checked) if r.in_records} == {
        (r.fingerprint, r.key_hash) for r in made.records if checked.keeps_record(r.fingerprint)
    }
    total = sum(record.side is Side.SOURCE for record in made.records)
    true_rates = {
        "loss": truth.count(Verdict.LOST) / total,
        "duplicates": (truth.count(Verdict.DUPLICATE) + truth.count(Verdict.REPLAY)) / total,
        "affinity": len(truth.split) / len(truth.keys),
    }
    inside: defaultdict[tuple[str, float], int] = defaultdict(int)
    widths: defaultdict[str, float] = defaultdict(float)
    for salt in range(SALTS):
        sample = Sample(RATE, salt)
        found = judge(list(drawing.draw(sample)), (), made.scope, sample)
        sources = sum(n for v, n in found.counts.items() if v not in SURPLUS)
        surplus = sum(n for v, n in found.counts.items() if v in SURPLUS)
        # Unlike in a census, a run of duplicates proves no replay.
        assert found.counts.get(Verdict.REPLAY, 0) == 0
        sources -= found.counts.get(Verdict.OUT_OF_ORDER, 0)
        events = {
            "loss": (found.counts.get(Verdict.LOST, 0), sources),
            "duplicates": (surplus, sources),
            "affinity": (found.affinity.keys_split, found.affinity.keys),
        }
        for what, (k, n) in events.items():
            for confidence in (0.95, 0.5):
                interval = clopper_pearson(k, n, confidence)
                inside[what, confidence] += interval.contains(true_rates[what])
            widths[what] += clopper_pearson(k, n).upper
    print(f"\n{SALTS} samples of {RATE:.0%} of {total} records, {time.monotonic() - started:.0f} s")
    for what, rate in true_rates.items():
        share = inside[what, 0.95] / SALTS
        print(f"{what}: true {rate:.3%}, inside {share:.2%}, mean bound {widths[what] / SALTS:.2%}")
        assert share >= 0.94
        # The bounds are not too wide, and narrower ones would fail.
        assert widths[what] / SALTS < 5 * rate + 0.03
        assert inside[what, 0.5] / SALTS < 0.94
