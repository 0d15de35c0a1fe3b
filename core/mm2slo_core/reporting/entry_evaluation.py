"""Evaluates counts to report entries: coverage, burning pairs, confirmation by audits."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate
from typing import Final

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import ADDITIONAL, FAULTS, Verdict
from mm2slo_core.catalogue.prometheus_series import LONG_WINDOWS, WINDOW_SECONDS
from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.objectives.error_budget import (
    MIN_COVERAGE,
    Budget,
    Counts,
    Reason,
    Status,
    StatusResult,
    burn_rate,
    evaluate_status,
)
from mm2slo_core.objectives.exclusion import ExclusionMark, Span
from mm2slo_core.objectives.objective import Objective, live_pairs, slo_id
from mm2slo_core.reporting.report_entry import (
    BudgetReading,
    Confirmation,
    Coverage,
    Entry,
    PairReading,
    PairState,
    PeriodComparison,
    ReportWindow,
    WindowKind,
)
from mm2slo_core.reporting.report_query import (
    BEFORE,
    RECENT,
    WINDOW,
    ReportQuery,
    count_minutes,
)
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, Indicator, SpanCounts, StepCounts

_SLICED: Final = frozenset({Sli.DATA_FRESHNESS, Sli.CHECKPOINT_FRESHNESS})
"""Indicators that count time slices: their budget in minutes is exact."""
_NOTHING: Final = SpanCounts()

_MARKED: Final = {
    ExclusionMark.ADDED_LATE: "was added late: recording rules counted events that this "
    "report excludes",
    ExclusionMark.REMOVED_LATE: "was removed late: recording rules excluded events that this "
    "report counts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorData:
    """The history of one indicator, and the audits of its flow."""

    counts: Mapping[Span, SpanCounts]
    known_since: int | None
    last_seen: int | None = None
    """End of the last sample, where the newest is not recent."""
    confirmation: Confirmation | None = None
    problem: str = ""
    """Why there are no counts, or empty."""


def evaluate_entries(
    query: ReportQuery, data: Mapping[Indicator, IndicatorData]
) -> tuple[Entry, ...]:
    """One entry per objective, in the order of the query."""
    return tuple(
        _Evaluation(query, each, data[Indicator(each.flow, each.key)]).entry()
        for each in query.objectives
    )


@dataclass(frozen=True, slots=True)
class _Evaluation:
    query: ReportQuery
    objective: Objective
    data: IndicatorData

    def entry(self) -> Entry:
        window = self.query.window_of(self.objective)
        spans = self.query.spans_by_name(self.objective)
        taken = {name: self._counted(span) for name, span in spans.items()}
        counts, excluded = taken[WINDOW]
        ratio = counts.good / counts.total if counts.total > 0 else None
        budget = self._budget(window.whole, counts)
        # As the recording rules do (`LONG_WINDOWS`): a long window counts as far as it was
        # measured, so that the first minutes of a flow cannot page; the short one ends the alert.
        burns = {
            name: self._budget(spans[name], taken[name][0]).consumed
            if name in LONG_WINDOWS
            else burn_rate(_settled(taken[name][0]), self.objective.target)
            for name in WINDOW_SECONDS
        }
        cover = self._coverage(spans, taken)
        counted = evaluate_status(
            self.objective,
            budget,
            {seconds: burns[name] for name, seconds in WINDOW_SECONDS.items()},
            unknown=counts.unknown,
            finished=window.is_finished,
        )
        result = self._with_audit(counted)
        return Entry(
            id=slo_id(self.objective.flow, self.objective.key),
            objective=self.objective,
            window=window,
            as_of=self.query.now,
            status=result.status,
            reason=result.reason,
            pair=result.pair,
            stale_since=self._stale_since(window, taken[RECENT][0]),
            counts=counts,
            excluded=excluded,
            ratio=ratio,
            budget=_reading(budget, estimate=self.objective.key.sli not in _SLICED),
            burn_rates=burns,
            exhaustion_seconds=_exhaustion(budget, window, burns["1h"]),
            projected_remaining=self._projected(budget, window, burns["1h"]),
            pairs=self._pairs(burns),
            coverage=cover,
            before=self._before(spans[BEFORE], taken[BEFORE][0], ratio),
            confirmation=self.data.confirmation,
            warnings=tuple(self._warnings(window, cover, counted)),
            errors=(self.data.problem,) if self.data.problem else (),
        )

    def _budget(self, span: Span, counts: SpanCounts) -> Budget:
        """The budget of *span*, of which *counts* are known."""
        return Budget(
            target=self.objective.target,
            window=self._seconds(span),
            measured=60.0 * counts.minutes,
            counts=_settled(counts),
        )

    def _seconds(self, span: Span) -> float:
        """The length of *span* without planned maintenance."""
        return 60.0 * self.query.minutes_to_measure(self.objective, span)

    def _projected(self, budget: Budget, window: ReportWindow, burn: float | None) -> float | None:
        """The remaining budget at the end of a running calendar period; None for other windows."""
        if window.kind is not WindowKind.CALENDAR or window.is_finished:
            return None
        return budget.projected(burn, self._seconds(Span(window.end, window.whole.end)))

    def _counted(self, span: Span) -> tuple[SpanCounts, SpanCounts]:
        """The counts of *span* without maintenance, and those of maintenance."""
        if self.data.problem:
            return _NOTHING, _NOTHING
        counts, parts = self.data.counts, self.query.excluded(self.objective, span)
        if not parts:
            return counts[span], _NOTHING
        excluded = sum((counts[part] for part in parts), _NOTHING)
        left = counts[span] - excluded
        # The source says how many events it left out itself, and not how many of them were good.
        return left, excluded + SpanCounts(good=left.excluded, total=left.excluded)

    def _coverage(
        self, spans: Mapping[str, Span], taken: Mapping[str, tuple[SpanCounts, SpanCounts]]
    ) -> Coverage:
        since = self.data.known_since
        expected = {name: self._expected(spans[name], since) for name in (WINDOW, "1h")}
        counts = taken[WINDOW][0]
        return Coverage(
            window=coverage(counts, expected[WINDOW]),
            hour=coverage(taken["1h"][0], expected["1h"]),
            minutes=counts.minutes,
            expected_minutes=expected[WINDOW],
            known_since=since,
        )

    def _expected(self, span: Span, since: int | None = None) -> int:
        """The minutes of *span* that steps should have measured: those of whole steps.

        Without planned maintenance and without the time before *since*; if *span* ends before it,
        all.
        """
        if since is not None and span.start < since < span.end:
            span = Span(since, span.end)
        minutes = self.query.minutes_to_measure(self.objective, span)
        return minutes - minutes % (STEP_MS // MINUTE_MS)

    def _stale_since(self, window: ReportWindow, recent: SpanCounts) -> int | None:
        """The end of the last sample, if recent ones are missing.

        Maintenance does not count: after it, the next sample is due as late as after a sample.
        """
        last, now = self.data.last_seen, self.query.now
        if window.is_finished or recent.minutes or last is None or last >= now:
            return None
        missing = self.query.minutes_to_measure(self.objective, Span(last, now))
        return last if missing >= count_minutes([self.query.recent]) else None

    def _with_audit(self, counted: StatusResult) -> StatusResult:
        """Faults that an audit found override a better or unknown status."""
        # Counters see canaries and offsets; an audit has compared the records themselves.
        faults = self.data.confirmation is not None and self.data.confirmation.faults
        if faults and counted.status not in {Status.BREACHED, Status.AT_RISK}:
            return StatusResult(Status.AT_RISK, Reason.AUDIT_FAULTS)
        return counted

    def _pairs(self, burns: Mapping[str, float | None]) -> tuple[PairReading, ...]:
        named = {seconds: burns[name] for name, seconds in WINDOW_SECONDS.items()}
        readings = []
        for pair in live_pairs(self.objective):
            long, short = named[pair.long], named[pair.short]
            factor = pair.factor(self.objective.window)
            exceeds_long, exceeds_short = (long or 0.0) > factor, (short or 0.0) > factor
            state = PairState.RECOVERING if exceeds_long else PairState.QUIET
            readings.append(
                PairReading(
                    name=pair.name,
                    severity=pair.severity,
                    long_seconds=pair.long,
                    short_seconds=pair.short,
                    long=long,
                    short=short,
                    factor=factor,
                    state=PairState.BURNING if exceeds_long and exceeds_short else state,
                )
            )
        return tuple(readings)

    def _before(
        self, span: Span, counts: SpanCounts, ratio: float | None
    ) -> PeriodComparison | None:
        remaining = self._budget(span, counts).remaining
        if remaining is None:
            return None
        earlier = counts.good / counts.total
        return PeriodComparison(
            start=span.start,
            end=span.end,
            ratio=earlier,
            ratio_change=None if ratio is None else ratio - earlier,
            remaining=remaining,
            # Of the whole period: its last days, in which a flow started, do not compare with it.
            coverage=coverage(counts, self._expected(span)),
        )

    def _warnings(self, window: ReportWindow, cover: Coverage, counted: StatusResult) -> list[str]:
        warnings = []
        if counted.status is Status.NO_DATA and self._with_audit(counted) != counted:
            warnings.append(counted.reason.value)
        known = cover.known_since
        covered = 1.0 if cover.hour is None or window.is_finished else cover.hour
        if counted.status is not Status.NO_DATA and covered < MIN_COVERAGE:
            warnings.append("coverage of the last hour is below 90 %")
        if known is not None and window.start < known < window.end:
            observed = _length((window.end - known) / 1000).removesuffix(" days")
            length = _length((window.end - window.start) / 1000)
            warnings.append(f"only {observed} of {length} of data")
        warnings += [
            f"maintenance {each.id} {_MARKED[each.mark]}"
            for each in self.query.exclusions
            if each.mark is not None
            and each.covers(self.objective.flow)
            and Span(each.start, each.end).overlaps(Span(window.start, window.end))
        ]
        if self.data.confirmation is not None and self.data.confirmation.faults:
            warnings.append(self.data.confirmation.sentence)
        return warnings


def _reading(budget: Budget, *, estimate: bool) -> BudgetReading:
    # Decimal gives 0.001 where floats give 0.0010000000000000009.
    allowed = 1 - Decimal(repr(budget.target))
    return BudgetReading(
        total=float(allowed),
        consumed=budget.consumed,
        remaining=budget.remaining,
        seconds=budget.window,
        total_seconds=float(allowed * Decimal(repr(budget.window))),
        total_events=budget.total_events,
        remaining_events=budget.total_events - budget.counts.bad,
        total_minutes=budget.total_minutes,
        remaining_minutes=budget.remaining_minutes,
        minutes_are_estimate=estimate,
    )


def _exhaustion(budget: Budget, window: ReportWindow, burn: float | None) -> float | None:
    """Seconds until the budget is exhausted; None for a past calendar period that kept some."""
    seconds = budget.exhaustion(burn)
    return None if seconds and window.is_finished else seconds


def _settled(counts: SpanCounts) -> Counts:
    return Counts(counts.bad, counts.total)


def _length(seconds: float) -> str:
    """*seconds* in days, hours or minutes: `2.5 days`, `5 h`, `4 min`."""
    for unit, size in (("days", 86_400.0), ("h", 3_600.0)):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds / 60:.0f} min"


def coverage(counts: SpanCounts, expected: int) -> float | None:
    """The share of *expected* minutes with a sample, times the known share of events.

    None if no minutes were expected, because of planned maintenance.
    """
    if expected <= 0:
        return None
    measured = min(counts.minutes / expected, 1.0)
    events = counts.total + counts.unknown
    return measured * (counts.total / events) if events > 0 else measured


def burning_since(
    pair: PairReading,
    target: float,
    steps: Iterable[StepCounts],
    span: Span,
    left_out: Iterable[Span] = (),
) -> int | None:
    """The first instant (epoch ms) from which both windows exceeded in every minute of *span*.

    *steps* are those of *span* with a sample, *left_out* its parts without steps to expect. None if
    the pair burned in every minute whose long window is within *span*, so that the start is
    earlier.
    """

    def place(at: int) -> int:
        return -(-(at - span.start) // MINUTE_MS)

    minutes = (span.end - span.start) // MINUTE_MS
    bad, total, measured, due = ([value] * (minutes + 1) for value in (0.0, 0.0, 0.0, 1.0))
    for each in steps:
        end = place(each.end)
        bad[end], total[end], measured[end] = each.total - each.good, each.total, each.minutes
    for part in left_out:
        first, last = place(part.start), place(part.end)
        due[first + 1 : last + 1] = [0.0] * (last - first)
    bad, total, measured, due = (list(accumulate(each)) for each in (bad, total, measured, due))
    long, short = (
        round(seconds * 1000) // MINUTE_MS for seconds in (pair.long_seconds, pair.short_seconds)
    )

    def exceeds(length: int, end: int) -> bool:
        start = end - length
        counts = Counts(bad[end] - bad[start], total[end] - total[start])
        if length == long:
            window, known = due[end] - due[start], measured[end] - measured[start]
            budget = Budget(target=target, window=window, measured=known, counts=counts)
            return (budget.consumed or 0.0) > pair.factor
        return (burn_rate(counts, target) or 0.0) > pair.factor

    for end in range(minutes, long - 1, -1):
        if not (exceeds(short, end) and exceeds(long, end)):
            # At the end itself it is known to burn, by counts that may be finer.
            return span.start + min(end + 1, minutes) * MINUTE_MS
    return None


_OPEN: Final = {Verdict.PENDING, Verdict.OVERDUE}
_EVER: Final = Window(0, 1 << 62)
_CENSUS: Final = Sample(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedUnit:
    """One topic in one audit of one flow. Times in epoch ms."""

    run_id: str
    complete_up_to: int | None
    counts: Mapping[Verdict, int]
    loss_below: float | None = None
    """With 95 % confidence; None for a census."""
    topic: str = ""
    started_at: int = 0
    window: Window = _EVER
    sample: Sample = _CENSUS
    oldest_open: int | None = None
    """Timestamp of the oldest pending or overdue record."""
    overdue_since: int | None = None
    """When the oldest overdue record became overdue."""

    def contains(self, start: int, end: int, sample: Sample) -> bool:
        """Whether it judged all records of *sample* from *start* to *end*."""
        nested = self.sample.salt == sample.salt and self.sample.rate >= sample.rate
        return (
            self.window.start <= start and end <= self.window.end and (nested or self.sample.census)
        )


def confirmation(units: Iterable[AuditedUnit], until: float = math.inf) -> Confirmation | None:
    """The summary of *units*; None without any.

    What a later audit judged again counts as that audit found it: records that arrived since are no
    faults any more. A record that became overdue at *until* or later is none yet. The bound is the
    weakest of all samples, because each applies to its own records only.
    """
    by_topic: defaultdict[str, list[AuditedUnit]] = defaultdict(list)
    for unit in sorted(units, key=lambda each: (each.started_at, each.run_id)):
        by_topic[unit.topic].append(unit)
    if not by_topic:
        return None
    known = [each for units_of_topic in by_topic.values() for each in _judged_last(units_of_topic)]
    counts: Counter[Verdict] = Counter()
    due: list[int] = []
    for unit in known:
        counts.update(unit.counts)
        if unit.overdue_since is not None and unit.overdue_since >= until:
            counts[Verdict.OVERDUE] -= unit.counts[Verdict.OVERDUE]
        elif unit.overdue_since is not None:
            due.append(unit.overdue_since)
    faults = {each.value: counts[each] for each in Verdict if each in FAULTS and counts[each]}
    bounds = [each.loss_below for each in known if each.loss_below is not None]
    up_to = _complete_up_to(known)
    judged = counts[Verdict.MATCHED] + counts[Verdict.LATE]
    judged += sum(counts[each] for each in FAULTS - ADDITIONAL)
    below = max(bounds) if bounds else None
    return Confirmation(
        audited_up_to=up_to,
        records=judged,
        faults=faults,
        loss_below=below,
        sentence=_sentence(up_to, judged, faults, min(due, default=None), below),
        run_ids=tuple(dict.fromkeys(each.run_id for each in known)),
    )


def _judged_last(units: Sequence[AuditedUnit]) -> Iterator[AuditedUnit]:
    """*units* of one topic, oldest run first, without what later ones judged again."""
    for number, unit in enumerate(units):
        later = units[number + 1 :]
        start, end = unit.window.start, unit.window.end
        is_faulty = any(unit.counts.get(each) for each in FAULTS)
        if is_faulty and any(each.contains(start, end, unit.sample) for each in later):
            continue
        opened = unit.oldest_open
        if opened is not None and any(each.contains(opened, end, unit.sample) for each in later):
            counts = {each: n for each, n in unit.counts.items() if each not in _OPEN}
            unit = replace(  # noqa: PLW2901 - the same unit, as far as it still counts
                unit, counts=counts, oldest_open=None, overdue_since=None
            )
        yield unit


def _complete_up_to(units: Iterable[AuditedUnit]) -> int | None:
    """Where the audits of all topics have come to, at most to the oldest open record."""
    reached: dict[str, int | None] = {}
    opened = [each.oldest_open for each in units if each.oldest_open is not None]
    for unit in units:
        before = reached.get(unit.topic)
        known = [each for each in (before, unit.complete_up_to) if each is not None]
        reached[unit.topic] = max(known, default=None)
    ends = [each for each in reached.values() if each is not None]
    return min(ends + opened) if len(ends) == len(reached) else None


def _sentence(
    up_to: int | None,
    judged: int,
    faults: Mapping[str, int],
    due: int | None,
    below: float | None,
) -> str:
    when = "audited" if up_to is None else f"audited up to {_minute(up_to)}"
    since = {} if due is None else {Verdict.OVERDUE.value: f" since {_minute(due)}"}
    named = (f"{count:,} {name}{since.get(name, '')}" for name, count in faults.items())
    faulty = ", ".join(named) or "0 lost"
    bound = "" if below is None else f", loss below {below * 100:.2g} % with 95 % confidence"
    return f"{when}: {faulty} of {judged:,}{bound}"


def _minute(epoch_ms: int) -> str:
    return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
