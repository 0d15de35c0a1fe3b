"""docs/accuracy.md from its figures (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accuracy.bound_coverage import Coverage
    from accuracy.latency_bounds import Widths
    from accuracy.verdict_scores import Tally

COMMAND = "python tests/benchmarks/bench_accuracy.py --write"


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that was measured."""

    generated: Mapping[str, Tally]
    """By who judged."""
    lab: Tally
    coverage: Mapping[str, Mapping[str, Coverage]]
    """By who judged, then by what."""
    latencies: Mapping[str, Widths]
    """By what was compared."""
    replayed: int
    """Duplicates that the kill in the lab left."""
    clean: int
    """Matched records of the topic that got traffic meanwhile."""


_HEAD = f"""\
# Accuracy

What the audit finds, compared with what is true. The truth is that of whoever made the faults; no
second audit is asked. All figures below were printed by

    {COMMAND}

which takes some minutes, needs Java and, for Kafka's jars, the network at first.

## Where the truth comes from

- **Generated** (`tests/support/generated_units`): a flow is simulated record by record; what was lost,
  copied again, moved, altered, overtaken, and when it arrived, is noted as it happens.
- **Lab** (`tests/support/audited`): two Kafka clusters and MirrorMaker 2. Records with a certain
  header are dropped by a transform of the flow (`Filter` with `HasHeaderKey`), so MirrorMaker 2
  really goes past them: lost. What should look altered or moved is lost that way and then written
  on the target by hand. Foreign records and single duplicates are written by hand. Records expire
  by `DeleteRecords` while MirrorMaker 2 is away. Replays come from killing it under load; which
  offsets are duplicates is found by a reader of both clusters that compares key, value, headers
  and timestamp byte by byte and shares no code with the audit. The rest of the lab's truth is held
  to the same reader (`tests/integration/audit/test_audit_injected.py`).
"""

_CLASSES = """\
## Recall and precision at census

By offset: a verdict counts as right when side, partition and offset are those of the truth.
Verdicts that leave no evidence are compared by their number.
"""

_COVERAGE = """\
## Bounds of a 1 % sample

How many of the samples, each with a salt of its own, gave a 95 % Clopper-Pearson interval that
holds the rate in all records. Reach: 94 % of 2,000 in plain Python, 183 of 200 in Spark.
"""

_LATENCY = """\
## Latency

The lab's targets stamp what they append (LogAppendTime), a little before anyone can read it; a
reader of both clusters notes when it had each record. An arrival lies between the two. The same
records are judged a second time as if the stamps said nothing: the bounds then come from the
timeline of polls. Where the source stamps as well, so does the start of a transfer. Of generated
records the latencies are known exactly. How late records were is the doing of the machine, on
which everything of the lab shares two cores; what the audit is asked for is that its bounds hold.
A percentile's bounds must agree with the true percentile; they are as wide as the gap between
two polls (both sides' gaps for transfer) with the time of a request, rounded outward to a bucket
(4.4 %).
"""


def render(figures: Figures) -> str:
    """The whole document."""
    return "\n".join(_lines(figures)) + "\n"


def _lines(figures: Figures) -> Iterator[str]:
    yield _HEAD
    yield _CLASSES
    for who, tally in {**figures.generated, "lab": figures.lab}.items():
        yield from _classes(who, tally)
    yield f"The kill left {figures.replayed:,} duplicates in the lab. The topic that got records"
    yield f"while it was audited had {figures.clean:,} matched records and no fault."
    yield ""
    yield _COVERAGE
    yield "| judged by | figure | true rate | samples | mean n | inside | share |"
    yield "|---|---|---|---|---|---|---|"
    for who, coverages in figures.coverage.items():
        for what, each in coverages.items():
            yield (
                f"| {who} | {what} | {each.true:.2%} | {each.salts:,} | {each.mean_n:.1f}"
                f" | {each.inside:,} | {each.share:.1%} |"
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
            yield f"| {verdict} (number) | {true:,} | {found:,} | | |"
    yield ""


def _latency(what: str, found: Widths) -> Iterator[str]:
    width = f"{found.mean_width_ms:.0f} ms"
    yield (
        f"**{what}**: {found.records:,} records, bounds {width} apart on average,"
        f" at most {found.widest_ms} ms"
    )
    yield ""
    yield "| percentile | true | lower | upper | holds |"
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
