"""Figures of a run, their columns and their text, the same in all report formats (pure).

A column of the tables is one entry of the list of columns: its heading, how it reads its figure,
and whether it is a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from mm2slo_audit.audit_ports import RunReport, UnitReport
from mm2slo_core.audit.audit_conclusion import complete_up_to
from mm2slo_core.audit.audit_scope import Comparison, TimestampType, UnitScope
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    ADDITIONAL,
    FAULTS,
    PERCENTILES,
    SURPLUS,
    AffinityOutcome,
    Evidence,
    LatencyBracket,
    LatencyCells,
    PartitionOutcome,
    UnitOutcome,
    Verdict,
    average_latency,
    count_latencies,
    latency_percentile,
    lower_bound_ms,
    merge_latencies,
    minimum_n,
    percentile_name,
    upper_bound_ms,
)
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.topology import Flow


class FigureColumn(NamedTuple):
    """The number of records with one of *verdicts*, or another figure as text."""

    heading: str
    verdicts: tuple[Verdict, ...] = ()
    always: bool = False
    """Shown even if all its figures are zero."""
    text: Callable[[Figures], str] | None = None

    @property
    def is_fault(self) -> bool:
        return bool(self.verdicts) and FAULTS.issuperset(self.verdicts)

    def count(self, figures: Figures) -> int:
        return sum(figures.counts.get(each, 0) for each in self.verdicts)

    def cell(self, figures: Figures) -> str:
        """The figure as text, `-` if unknown."""
        if self.text is not None:
            return self.text(figures)
        if Verdict.OUT_OF_ORDER in self.verdicts and not figures.order_judged:
            return UNKNOWN
        return f"{self.count(figures):,}"

    def is_shown(self, rows: Sequence[Figures]) -> bool:
        return self.always or any(self.cell(each) not in {"0", UNKNOWN} for each in rows)


UNKNOWN: Final = "-"

_TWO_DIGITS: Final = 10
"""Values below are shown with a decimal."""


def format_bracket(found: LatencyBracket | None) -> str:
    """`14-120 ms`, `<= 120 ms` without a lower bound, `-` if unknown."""
    if found is None:
        return UNKNOWN
    size, unit = _unit(found.upper)
    digits = 1 if size > 1 and found.upper / size < _TWO_DIGITS else 0
    upper = f"{found.upper / size:,.{digits}f}"
    if found.lower is None or found.lower <= 0:
        return f"<= {upper} {unit}"
    lower = f"{found.lower / size:,.{digits}f}"
    return f"{upper} {unit}" if lower == upper else f"{lower}-{upper} {unit}"


def format_affinity(found: AffinityOutcome) -> str:
    """How many keys have broken affinity or order."""
    if not found.keys:
        return UNKNOWN
    broken = found.keys_split + found.keys_disordered
    return f"{broken:,} of {found.keys:,}"


def _unit(ms: float) -> tuple[float, str]:
    for limit, size, unit in ((1e3, 1, "ms"), (1.2e5, 1e3, "s"), (7.2e6, 6e4, "min")):
        if ms < limit:
            return size, unit
    return 3.6e6, "h"


P99: Final = 0.99

_COLUMNS: Final = (
    FigureColumn("Matched", (Verdict.MATCHED,), always=True),
    FigureColumn("Lost", (Verdict.LOST,), always=True),
    FigureColumn("Overdue", (Verdict.OVERDUE,)),
    FigureColumn("Expired", (Verdict.EXPIRED,)),
    FigureColumn("Moved", (Verdict.MOVED,)),
    FigureColumn("Altered", (Verdict.ALTERED,)),
    FigureColumn("Unmasked", (Verdict.UNMASKED,)),
    FigureColumn("Duplicates", (Verdict.DUPLICATE, Verdict.REPLAY), always=True),
    FigureColumn("Late", (Verdict.LATE,)),
    FigureColumn("Pending", (Verdict.PENDING,)),
    FigureColumn("Extra", (Verdict.EXTRA,)),
    FigureColumn("Out of order", (Verdict.OUT_OF_ORDER,)),
    FigureColumn("Unauditable", (Verdict.UNAUDITABLE,)),
    FigureColumn(
        "p99 latency",
        always=True,
        text=lambda figures: format_bracket(figures.end_to_end.percentiles[P99]),
    ),
    FigureColumn("Keys broken", text=lambda figures: format_affinity(figures.affinity)),
)


def shown_columns(rows: Sequence[Figures], width: int | None = None) -> tuple[FigureColumn, ...]:
    """The columns with a figure in one of *rows*.

    If they do not fit into *width* characters, figures that are no faults are left out first.
    """
    shown = [each for each in _COLUMNS if each.is_shown(rows)]
    while width is not None and columns_width(shown, rows) > width:
        optional = [each for each in shown if not each.always]
        if not optional:
            break
        shown.remove(max(optional, key=lambda each: (not each.is_fault, shown.index(each))))
    return tuple(shown)


def columns_width(columns: Sequence[FigureColumn], rows: Sequence[Figures]) -> int:
    """The width of *columns* with the space before each."""
    return sum(2 + max(len(col.heading), *(len(col.cell(row)) for row in rows)) for col in columns)


def format_throughput(found: SourceThroughput) -> str:
    """`1,234 records/s, 56.7 kB/s`."""
    return f"{_rate(found.records)} records/s, {_bytes(found.size)}/s"


def format_window(report: RunReport) -> str:
    return f"{utc_text(report.header.window.start)} to {utc_text(report.header.window.end)}"


def format_coverage(report: RunReport) -> str:
    """Whether the run was a census or a sample, and how much it read."""
    sample = report.sample
    if sample.census:
        text = "census: every record of the window was compared"
    else:
        text = (
            f"sample: {sample.rate * 100:g}% of the records, chosen by hash, the same on both sides"
        )
    about = "" if sample.census else "about "
    return f"{text}; {about}{_bytes(report.bytes_read)} read"


def format_duration(milliseconds: float) -> str:
    """`4.2 s`, `3 min 20 s`."""
    seconds = milliseconds / 1000
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def format_evidence(scope: UnitScope, each: Evidence) -> str:
    """Where a record of the evidence and its counterpart are."""
    target = f"{scope.flows[0].flow.target} {scope.target_topic}"
    flow = scope.flows[each.flow]
    source = f"{flow.flow.source} {flow.source_topic}"
    topic = source if each.side is Side.SOURCE else target
    time = each.timestamp if each.time is None else utc_text(each.time)
    text = f"{topic}-{each.partition} offset {each.offset}, timestamp {time}"
    if each.other_partition is not None and each.other_offset is not None:
        text += f"; its copy: {target}-{each.other_partition} offset {each.other_offset}"
    return text


def _rate(per_second: float) -> str:
    return f"{per_second:.1f}" if per_second < _TWO_DIGITS else f"{per_second:,.0f}"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def format_latency(name: str, found: Latency) -> str:
    """`end to end: p50 3 ms, p99 14-120 ms, average 5 ms (1,234 records)`."""
    if not found.records:
        return f"{name}: unknown"
    parts = [
        f"{percentile_name(q)} {format_bracket(value)}"
        for q, value in found.percentiles.items()
        if value is not None
    ]
    parts.append(f"average {format_bracket(found.average)}")
    return f"{name}: {', '.join(parts)} ({plural(found.records, 'record')})"


_ARRIVALS_APART_MS: Final = 300
"""Between two readings of a target of up to 1,000 partitions; see docs/audit.md."""

_BUCKETS_APART: Final = 0.09
"""Both bounds are rounded to buckets, up to 4.4 % each."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies in ms, each between two bounds."""

    records: int
    average: LatencyBracket | None
    percentiles: Mapping[float, LatencyBracket | None]
    """None: too few records for the percentile."""
    negative: int = 0
    """Records that arrived before they were sent: the clocks disagree."""


@dataclass(frozen=True, slots=True)
class SourceThroughput:
    """Source records of the window per second; a sample is scaled up."""

    records: float
    """Per second."""
    size: float
    """Bytes of keys and values per second."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one topic, of one of its partitions, or of one flow with all its topics."""

    name: str
    counts: Mapping[Verdict, int]
    order_judged: bool
    """Whether order within a partition is judged."""
    end_to_end: Latency
    transfer: Latency
    without_bracket: int
    throughput: SourceThroughput
    affinity: AffinityOutcome = field(default_factory=AffinityOutcome)
    """Only of a topic."""


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """Figures of one target topic, with notes on their quality."""

    unit: UnitReport
    figures: Figures
    flows: tuple[tuple[Flow, str], ...]
    """The flows that feed it, each with its source topic."""
    complete_up_to: int
    partitions: tuple[Figures, ...]
    quality: tuple[str, ...] = field(default=())
    """Sentences that qualify the figures."""


def compute_topic_figures(unit: UnitReport, sample: Sample) -> TopicFigures:
    """The figures of one target topic."""
    outcome = unit.outcome
    scope = outcome.scope
    seconds = (scope.window.end - scope.window.start) / 1000
    ordered = _judges_order(outcome)
    whole = _figures(scope.target_topic, outcome.partitions, sample, seconds, ordered=ordered)
    whole = replace(whole, affinity=outcome.affinity)
    return TopicFigures(
        unit=unit,
        figures=whole,
        flows=tuple((each.flow, each.source_topic) for each in scope.flows),
        complete_up_to=complete_up_to(outcome),
        partitions=tuple(
            _figures(_partition_name(part, unit), [part], sample, seconds, ordered=ordered)
            for part in sorted(
                outcome.partitions, key=lambda each: (each.flow is None, each.flow, each.partition)
            )
        ),
        quality=tuple(_quality(unit, whole, sample)),
    )


def compute_flow_figures(report: RunReport) -> tuple[Figures, ...]:
    """Figures per flow over all its topics; together, those of all topics.

    Records that are only on the target belong to the flow, or to all flows, that feed the topic.
    """
    seconds = (report.header.window.end - report.header.window.start) / 1000
    parts: dict[str, list[PartitionOutcome]] = {flow.label: [] for flow in report.header.flows}
    ordered = set()
    for outcome in (unit.outcome for unit in report.units):
        labels = [each.flow.label for each in outcome.scope.flows]
        for part in outcome.partitions:
            label = "+".join(labels) if part.flow is None else labels[part.flow]
            parts.setdefault(label, []).append(part)
            if _judges_order(outcome):
                ordered.add(label)
    return tuple(
        _figures(label, found, report.sample, seconds, ordered=label in ordered)
        for label, found in parts.items()
        if found
    )


def _judges_order(outcome: UnitOutcome) -> bool:
    return outcome.order_judged and outcome.scope.comparison is Comparison.RECORDS


def _figures(
    name: str,
    parts: Sequence[PartitionOutcome],
    sample: Sample,
    seconds: float,
    *,
    ordered: bool,
) -> Figures:
    counts: Counter[Verdict] = Counter()
    for part in parts:
        counts.update(part.counts)
    return Figures(
        name=name,
        counts=+counts,
        order_judged=ordered,
        end_to_end=_latency(merge_latencies(part.end_to_end for part in parts), sample),
        transfer=_latency(merge_latencies(part.transfer for part in parts), sample),
        without_bracket=sum(part.without_bracket for part in parts),
        throughput=SourceThroughput(
            sum(map(_count_source_records, parts)) / sample.share / seconds,
            sum(part.source_bytes for part in parts) / sample.share / seconds,
        ),
    )


def _count_source_records(part: PartitionOutcome) -> int:
    """Source records: each has one verdict, apart from out-of-order, which is an additional one."""
    if part.flow is None:
        return 0
    not_counted = SURPLUS | ADDITIONAL | {Verdict.EXPIRED}
    return sum(count for verdict, count in part.counts.items() if verdict not in not_counted)


def _latency(cells: LatencyCells, sample: Sample) -> Latency:
    return Latency(
        count_latencies(cells),
        average_latency(cells),
        {q: latency_percentile(cells, q, sampled=not sample.census) for q in PERCENTILES},
        cells.negative,
    )


def _partition_name(part: PartitionOutcome, unit: UnitReport) -> str:
    scope = unit.outcome.scope
    if part.flow is None:
        return f"{scope.target_topic}-{part.partition} (target only)"
    flow = scope.flows[part.flow]
    label = f"{flow.source_topic}-{part.partition}"
    return label if len(scope.flows) == 1 else f"{flow.flow.label} {label}"


def _quality(unit: UnitReport, figures: Figures, sample: Sample) -> Iterable[str]:
    outcome = unit.outcome
    scope = outcome.scope
    # Rates of zero in a census add nothing to the counts.
    yield from (bound.sentence for bound in unit.bounds if bound.upper > 0)
    disorder = figures.counts.get(Verdict.OUT_OF_ORDER, 0)
    if disorder and not sample.census:
        yield (
            f"out of order in their partition: {plural(disorder, 'sampled record')}; a rate per"
            " partition requires a census"
        )
    copied = figures.counts.get(Verdict.MATCHED, 0) + figures.counts.get(Verdict.LATE, 0)
    if copied and not figures.end_to_end.records and not figures.transfer.records:
        yield (
            "no latency: the watermark timeline does not cover these records (`mm2slo exporter`"
            " writes it while it runs)"
        )
    elif figures.without_bracket:
        yield (
            f"latency excludes {figures.without_bracket:,} of {plural(copied, 'record')}, which the"
            " watermark timeline does not cover"
        )
    if figures.end_to_end.negative:
        yield (
            f"arrived before they were sent: {plural(figures.end_to_end.negative, 'record')}; the"
            " clocks of producers and clusters disagree"
        )
    yield from _wide_brackets(outcome, figures.end_to_end, sample)
    few = figures.end_to_end.records
    if 0 < few < minimum_n(P99):
        yield f"too few for a p99, which requires {minimum_n(P99)}: {plural(few, 'record')}"
    yield from _limitations(unit, figures)
    if scope.comparison is Comparison.KEYS:
        yield "partition counts differ: records are compared across partitions"
    elif scope.comparison is Comparison.LATEST:
        yield "compacted: only the newest value of each key is compared"


def _wide_brackets(outcome: UnitOutcome, found: Latency, sample: Sample) -> Iterable[str]:
    """Which percentiles have wide bounds, and why."""
    wide = [
        percentile_name(q)
        for q, each in found.percentiles.items()
        if each and (each.lower is None or each.upper - each.lower > _width(each.upper))
    ]
    if not wide:
        return
    cells = merge_latencies(part.end_to_end for part in outcome.partitions).cells
    unknown = sum(count for (lower, _upper), count in cells.items() if lower is None)
    apart = {
        (lower, upper): lower_bound_ms(upper) - upper_bound_ms(lower)
        for lower, upper in cells
        if lower is not None
    }
    far = {each: ms for each, ms in apart.items() if ms > _ARRIVALS_APART_MS}
    causes, records = [], plural(found.records, "record")
    if far:
        causes.append(
            f"{sum(cells[each] for each in far):,} of {records} arrived between"
            f" readings of the target that are up to {max(far.values()) / 1000:,.1f} s apart (the"
            " exporter was behind or paused, their partition was new to it, or they are older than"
            " the arrivals that it keeps)"
        )
    if unknown:
        causes.append(
            f"{unknown:,} of {records} arrived before the exporter's first reading"
            " of their partition"
        )
    if not sample.census:
        causes.append("those of a sample hold for all records")
    if causes:
        yield f"the bounds of end to end {', '.join(wide)} are wide: {'; '.join(causes)}"


def _width(upper: float) -> float:
    """The width in ms that arrival times and the buckets of latencies explain."""
    return _ARRIVALS_APART_MS + _BUCKETS_APART * upper


def _equal_record_criterion(scope: UnitScope) -> str:
    return "their range between offset syncs" if scope.bucketed else "their number"


_TIMES: Final = {
    TimestampType.LOG_APPEND: "uses LogAppendTime",
    TimestampType.MIXED: "has records with CreateTime and others with LogAppendTime",
}


def _limitations(unit: UnitReport, figures: Figures) -> Iterable[str]:
    outcome = unit.outcome
    scope = outcome.scope
    if scope.target_time is not TimestampType.CREATE:
        yield (
            f"the target {_TIMES[scope.target_time]}: timestamps are not compared, so equal"
            f" records of one partition are distinguished only by {_equal_record_criterion(scope)}"
        )
    left_out = [
        name
        for name, covered in (
            ("keys", scope.identity.key),
            ("values", scope.identity.value),
            ("headers", scope.identity.headers),
        )
        if not covered
    ]
    left_out += [f"header {name}" for name in scope.identity.ignored_headers]
    if left_out:
        yield f"not compared, as configured: {', '.join(left_out)}"
    if any(not flow.has_positions for flow in scope.flows):
        yield "no MirrorMaker 2: which records are due follows only from their age"
    if not outcome.order_judged:
        yield "order is not judged"
    if unaudited := figures.counts.get(Verdict.UNAUDITABLE, 0):
        yield f"unauditable, as the counterpart is gone or unknown: {plural(unaudited, 'record')}"
