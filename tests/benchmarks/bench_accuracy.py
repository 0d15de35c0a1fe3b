"""Accuracy of the audit: recall, precision, coverage and latency widths with injected faults.

--write updates docs/accuracy.md. Exits with 1 if a value misses its goal.
"""

import argparse
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from accuracy.accuracy_document import Figures, render
from accuracy.bound_coverage import Coverage, coverage, population
from accuracy.lab_accuracy import lab_figures
from accuracy.latency_bounds import Widths, known, widths
from accuracy.spark_coverage import coverage_in_spark
from accuracy.verdict_scores import Tally
from audit_spark import poll_frame, record_frame, start
from generated_units import POLL_MS, Faults, generate
from reference_audit import judge

from mm2slo_audit.engine.judgement import judge as judge_in_spark
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome

Part = TypeVar("Part")
DOCUMENT = Path(__file__).parents[2] / "docs" / "accuracy.md"
CENSUS = Sample(1.0)
FAULTS = Faults(late=20, moved_again=4)
SALTS = {"plain Python": 1_000, "Spark": 200}
REACH = {"plain Python": 0.95, "Spark": 183 / 200}
SEEDS = {"generated, judged in plain Python": range(20), "generated, judged by Spark": range(3)}


def say(line: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')} {line}", flush=True)


def classes() -> dict[str, Tally]:
    tallies = {who: Tally() for who in SEEDS}
    for who, outcome, seed in judged():
        generated = generate(seed, faults=FAULTS)
        tallies[who].add(outcome, generated.truth.named(), generated.counts)
    return tallies


def judged() -> Iterator[tuple[str, UnitOutcome, int]]:
    python, spark = SEEDS
    for seed in SEEDS[python]:
        data = generate(seed, faults=FAULTS)
        yield python, judge(data.records, data.polls, data.scope, CENSUS), seed
    session = start()
    for seed in SEEDS[spark]:
        data = generate(seed, faults=FAULTS)
        records, polls = record_frame(session, data.records), poll_frame(session, data.polls)
        found = judge_in_spark(session, records, polls, [data.scope], CENSUS, evidence_cap=None)
        yield spark, found[0], seed


def generated_latencies() -> dict[str, Widths]:
    data = generate(0)
    outcome = judge(data.records, data.polls, data.scope, CENSUS)
    title = f"generated, polls every {POLL_MS} ms"
    return {
        f"{title}, end to end": widths(outcome, "end_to_end", known(data.end_to_end)),
        f"{title}, transfer": widths(outcome, "transfer", known(data.transfer)),
    }


def covered(who: str) -> dict[str, Coverage]:
    data, seeds = population(), range(1, SALTS[who] + 1)
    return coverage_in_spark(start(), data, seeds) if who == "Spark" else coverage(data, seeds)


def kept(folder: Path | None, what: str, measure: Callable[[], Part]) -> Part:
    """The result in *folder* from an earlier run, or a new measurement."""
    file = None if folder is None else folder / what.replace(" ", "-")
    if file is not None and file.exists():
        found: Part = pickle.loads(file.read_bytes())  # noqa: S301 - written by an earlier run of this
        return found
    say(what)
    found = measure()
    if file is not None:
        file.write_bytes(pickle.dumps(found))
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
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="continue an earlier run")
    chosen = parser.parse_args()
    folder = chosen.keep
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    lab = kept(folder, "a lab with every fault", lab_figures)
    figures = Figures(
        generated=kept(folder, "generated data at census", classes),
        lab=lab.tally,
        coverage={
            who: kept(folder, f"samples of 1 % in {who}", partial(covered, who)) for who in SALTS
        },
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
    for tally in (lab.tally, *figures.generated.values()):
        for difference in tally.differences:
            print(f"DIFFERS {difference} (true, found)")
    return 1 if missed(figures) else 0


if __name__ == "__main__":
    sys.exit(main())
