"""Recall, precision, coverage of bounds and widths of latencies, against injected truth.

With --write the figures become docs/accuracy.md. Exit code 1 when one misses its reach.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from accuracy.classes import Tally
from accuracy.coverage import coverage, population
from accuracy.document import Figures, render
from accuracy.in_spark import coverage_in_spark
from accuracy.lab import lab_figures
from accuracy.latency import widths
from audit_spark import poll_frame, record_frame, start
from generated import generate
from generated.unit import POLL_MS

from mm2slo_audit.engine import judge as judge_in_spark
from mm2slo_core.audit.reference import judge
from mm2slo_core.audit.sampling import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accuracy.coverage import Coverage
    from accuracy.latency import Widths

    from mm2slo_core.audit.outcome import UnitOutcome

DOCUMENT = Path(__file__).parents[2] / "docs" / "accuracy.md"
CENSUS = Sample(1.0)
SALTS = {"plain Python": 2_000, "Spark": 200}
REACH = {"plain Python": 0.94, "Spark": 183 / 200}
SEEDS = {"generated, judged in plain Python": range(20), "generated, judged by Spark": range(3)}


def say(line: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')} {line}", flush=True)


def classes() -> dict[str, Tally]:
    tallies = {who: Tally() for who in SEEDS}
    for who, outcome, seed in judged():
        generated = generate(seed)
        tallies[who].take(outcome, generated.truth.named(), generated.counts)
    return tallies


def judged() -> Iterator[tuple[str, UnitOutcome, int]]:
    python, spark = SEEDS
    for seed in SEEDS[python]:
        data = generate(seed)
        yield python, judge(data.records, data.polls, data.scope, CENSUS), seed
    session = start()
    for seed in SEEDS[spark]:
        data = generate(seed)
        records, polls = record_frame(session, data.records), poll_frame(session, data.polls)
        found = judge_in_spark(session, records, polls, [data.scope], CENSUS, evidence_cap=None)
        yield spark, found[0], seed


def generated_latencies() -> dict[str, Widths]:
    data = generate(0)
    outcome = judge(data.records, data.polls, data.scope, CENSUS)
    title = f"generated, polls every {POLL_MS} ms"
    return {
        f"{title}, end to end": widths(outcome, "end_to_end", data.end_to_end),
        f"{title}, transfer": widths(outcome, "transfer", data.transfer),
    }


def coverages() -> dict[str, dict[str, Coverage]]:
    data = population()
    found = {}
    for who, salts in SALTS.items():
        say(f"{salts:,} samples of 1 % in {who}")
        seeds = range(1, salts + 1)
        found[who] = (
            coverage_in_spark(start(), data, seeds) if who == "Spark" else coverage(data, seeds)
        )
    return found


def missed(figures: Figures) -> list[str]:
    found = [
        f"recall or precision: {who}"
        for who, tally in {**figures.generated, "lab": figures.lab}.items()
        if not tally.perfect
    ]
    found += [
        f"coverage: {who}, {what}, {each.share:.1%}"
        for who, coverages_ in figures.coverage.items()
        for what, each in coverages_.items()
        if each.share < REACH[who]
    ]
    found += [
        f"latency: {what}, p{each.q * 100:g}"
        for what, of_kind in figures.latencies.items()
        for each in of_kind.percentiles
        if not each.held
    ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/accuracy.md")
    chosen = parser.parse_args()
    say("a lab with every fault, audited")
    lab = lab_figures()
    say("generated data at census")
    figures = Figures(
        generated=classes(),
        lab=lab.tally,
        coverage=coverages(),
        latencies={**generated_latencies(), **lab.latencies},
        replayed=lab.replayed,
        clean=lab.clean,
    )
    text = render(figures)
    print(text)
    if chosen.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    for each in missed(figures):
        print(f"MISSED {each}")
    return 1 if missed(figures) else 0


if __name__ == "__main__":
    sys.exit(main())
