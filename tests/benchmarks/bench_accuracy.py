"""Accuracy of the audit: recall, precision, coverage and latency widths with injected faults.

--write updates docs/accuracy.md. Exits with 1 if a value misses its goal.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from accuracy.bound_coverage import RATE, BoundTally, Coverage, coverage, population, true_values
from accuracy.lab_accuracy import lab_figures
from accuracy.latency_bounds import Widths, known, widths
from accuracy.verdict_scores import Tally
from audit_spark import poll_frame, record_frame, start
from generated_units import POLL_MS, Faults, Generated, generate
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from reference_audit import judge

from mm2slo_audit.engine.judgement import judge as judge_in_spark
from mm2slo_audit.spark.connector_rows import is_sampled
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 25
"""Samples that are judged together, each as a unit."""


def coverage_in_spark(
    spark: SparkSession, generated: Generated, salts: Sequence[int]
) -> dict[str, Coverage]:
    """`coverage`, computed by Spark."""
    records = record_frame(spark, generated.records).persist()
    polls = poll_frame(spark, ())
    tally = BoundTally(true_values(generated))
    for first in range(0, len(salts), _AT_ONCE):
        some = salts[first : first + _AT_ONCE]
        drawn = [
            _drawn(records, Sample(RATE, salt)).withColumn("topic", fn.lit(index))
            for index, salt in enumerate(some)
        ]
        scopes = [replace(generated.scope, index=index) for index in range(len(some))]
        together = reduce(DataFrame.unionByName, drawn).persist()
        judged = judge_in_spark(spark, together, polls, scopes, Sample(RATE))
        for salt, outcome in zip(some, judged, strict=True):
            tally.add(outcome, Sample(RATE, salt))
        together.unpersist()
    records.unpersist()
    return tally.coverage()


def _drawn(records: DataFrame, sample: Sample) -> DataFrame:
    in_keys = fn.coalesce(is_sampled(sample, fn.col("kh"), sample.key_threshold), fn.lit(False))
    marked = records.withColumns(
        {
            "in_records": is_sampled(sample, fn.col("fp"), sample.record_threshold),
            "in_keys": in_keys,
        }
    )
    return marked.where("in_records or in_keys")


COMMAND = "deploy/scripts/bench accuracy --write"


@dataclass(frozen=True, slots=True)
class Figures:
    """All measured figures."""

    generated: Mapping[str, Tally]
    """By implementation."""
    lab: Tally
    coverage: Mapping[str, Mapping[str, Coverage]]
    """By implementation, then by rate."""
    latencies: Mapping[str, Widths]
    """By measurement."""
    replayed: int
    """Duplicates after the kill in the lab."""
    clean: int
    """Matched records of the topic with traffic during the audit."""


_HEAD = f"""\
# Accuracy

Compares the findings of the audit with the true verdicts, which are known from fault injection
and not from another audit. All figures below were printed by

    {COMMAND}

which takes some minutes, and requires Java and, at first, the network for Kafka's jars.

## Source of the true verdicts

- **Generated** (`tests/support/generated_units`): simulates a flow record by record and records
  every loss, duplicate, replay, move, second copy of a moved record, alteration, overtaking, late
  arrival and arrival time.
- **Lab** (`tests/support/audit_scenario`): two Kafka clusters and MirrorMaker 2. A transform of
  the flow (`Filter` with `HasHeaderKey`) drops marked records, so MirrorMaker 2 loses them. Altered
  and moved records are dropped this way and then written to the target directly, as are foreign
  records and single duplicates. Records expire by `DeleteRecords` while MirrorMaker 2 is stopped.
  Replays come from killing it under load; an independent reader of both clusters, which compares
  key, value, headers and timestamp byte by byte and shares no code with the audit, finds the
  duplicated offsets. It also verifies the other true verdicts
  (`tests/integration/audit/test_audit_injected.py`).
"""

_CLASSES = """\
## Recall and precision at census

A verdict is correct if its side, partition and offset equal the true ones. Verdicts without
evidence are compared by count.
"""

_COVERAGE = """\
## Bounds of a 1 % sample

How many samples, each with its own salt, had a 95 % interval that contains the value of all
records. Samples with fewer than ten broken keys have no interval of their records (0 to 100 %).
Required: 95 % of 1,000 in plain Python, 183 of 200 in Spark.
"""

_LATENCY = """\
## Latency

The lab's targets use LogAppendTime, which slightly precedes the time at which a record can be
read; an independent reader records when it read each record. The true arrival is between the two.
The records are judged a second time without LogAppendTime, so that the bounds come from the
arrivals topic and, for the source, from the polls of the watermark timeline. If the source uses
LogAppendTime, the start of a transfer is bounded in the same way. Latencies of generated records
are known exactly. The latencies themselves depend on the machine, where the whole lab shares two
cores; tested is that the bounds of the audit are correct. A percentile's bounds must agree with
the true percentile. Their width is the interval between two reads (for transfer, of both sides)
plus the time of a request, rounded outward to a bucket (4.4 %).
"""


def render(figures: Figures) -> str:
    return "\n".join(_lines(figures)) + "\n"


def _lines(figures: Figures) -> Iterator[str]:
    yield _HEAD
    yield _CLASSES
    for who, tally in {**figures.generated, "lab": figures.lab}.items():
        yield from _classes(who, tally)
    yield f"The kill in the lab caused {figures.replayed:,} duplicates. The topic with traffic"
    yield f"during the audit had {figures.clean:,} matched records and no fault."
    yield ""
    yield _COVERAGE
    yield "| judged by | bound | true value | samples | mean upper bound | inside | share |"
    yield "|---|---|---|---|---|---|---|"
    for who, coverages in figures.coverage.items():
        for what, each in coverages.items():
            shown = "{:.0f} ms" if what.startswith("latency") else "{:.2%}"
            yield (
                f"| {who} | {what} | {shown.format(each.true)} | {each.samples:,}"
                f" | {shown.format(each.mean_upper)} | {each.inside:,} | {each.share:.1%} |"
            )
    yield ""
    yield _LATENCY
    for what, found in figures.latencies.items():
        yield from _latency(what, found)


def _classes(who: str, tally: Tally) -> Iterator[str]:
    yield f"**{who}**: {tally.units} units, {tally.records:,} verdicts"
    yield ""
    yield "| verdict | true | found | recall | precision |"
    yield "|---|---|---|---|---|"
    for verdict, score in sorted(tally.by_offset.items()):
        yield (
            f"| {verdict} | {score.true:,} | {score.found:,}"
            f" | {score.recall:.0%} | {score.precision:.0%} |"
        )
    for verdict, (true, found) in sorted(tally.by_count.items()):
        if true or found:
            yield f"| {verdict} (count) | {true:,} | {found:,} | | |"
    yield ""


def _latency(what: str, found: Widths) -> Iterator[str]:
    width = f"{found.mean_width_ms:.0f} ms"
    yield (
        f"**{what}**: {found.records:,} records, bounds {width} apart on average,"
        f" at most {found.widest_ms} ms"
    )
    yield ""
    yield "| percentile | true | lower | upper | correct |"
    yield "|---|---|---|---|---|"
    for each in found.percentiles:
        bracket = each.found
        lower = "-" if bracket is None or bracket.lower is None else f"{bracket.lower:.0f} ms"
        upper = "-" if bracket is None else f"{bracket.upper:.0f} ms"
        held = "yes" if each.held else "**no**"
        true = f"{each.least_ms}"
        if each.greatest_ms != each.least_ms:
            true += f" to {each.greatest_ms}"
        yield f"| p{each.q * 100:g} | {true} ms | {lower} | {upper} | {held} |"
    yield ""


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
