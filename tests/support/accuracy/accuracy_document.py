"""Renders docs/accuracy.md from its figures (pure)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from accuracy.bound_coverage import Coverage
from accuracy.latency_bounds import Widths
from accuracy.verdict_scores import Tally

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
