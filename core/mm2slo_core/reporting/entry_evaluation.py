"""Evaluates counts to report entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import LONG_WINDOWS, WINDOW_SECONDS
from mm2slo_core.objectives.error_budget import Budget, Counts, allowed_ratio, burn_rate
from mm2slo_core.objectives.exclusion import Mark, Span
from mm2slo_core.objectives.slo_ids import slo_id
from mm2slo_core.objectives.slo_status import (
    MIN_COVERAGE,
    Reason,
    Status,
    StatusResult,
    evaluate_status,
)
from mm2slo_core.objectives.traffic_limits import live_pairs
from mm2slo_core.reporting.report_entry import (
    BudgetReading,
    Comparison,
    Coverage,
    Entry,
    PairReading,
    PairState,
    WindowKind,
)
from mm2slo_core.reporting.report_query import BEFORE, RECENT, WINDOW, count_minutes
from mm2slo_core.reporting.step_counts import Indicator, SpanCounts
from mm2slo_core.reporting.window_coverage import coverage, expected_minutes
from mm2slo_core.sli_counters import Sli

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.report_entry import Confirmation, ReportWindow
    from mm2slo_core.reporting.report_query import ReportQuery

_SLICED: Final = frozenset({Sli.DATA_FRESHNESS, Sli.CHECKPOINT_FRESHNESS})
"""Indicators that count time slices: their budget in minutes is exact."""
_NOTHING: Final = SpanCounts()
_MARKED: Final = {
    Mark.ADDED_LATE: "was added late: recording rules counted events that this report excludes",
    Mark.REMOVED_LATE: "was removed late: recording rules excluded events that this report counts",
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


def entries(query: ReportQuery, data: Mapping[Indicator, IndicatorData]) -> tuple[Entry, ...]:
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
        wholes = self.query.spans_by_name(self.objective)
        taken = {name: self._counted(whole) for name, whole in wholes.items()}
        counts, excluded = taken[WINDOW]
        budget = self._budget(window.whole, counts)
        burns = {
            name: self._budget(wholes[name], taken[name][0]).consumed
            if name in LONG_WINDOWS
            else burn_rate(_settled(taken[name][0]), self.objective.target)
            for name in WINDOW_SECONDS
        }
        cover = self._coverage(wholes, taken)
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
            ratio=counts.good / counts.total if counts.total > 0 else None,
            budget=_reading(budget, estimate=self.objective.key.sli not in _SLICED),
            burn_rates=burns,
            exhaustion_seconds=_exhaustion(budget, window, burns["1h"]),
            projected_remaining=self._projected(budget, window, burns["1h"]),
            pairs=self._pairs(burns),
            coverage=cover,
            before=self._before(wholes[BEFORE], taken[BEFORE][0]),
            confirmation=self.data.confirmation,
            warnings=tuple(self._warnings(window, cover, counted)),
            errors=(self.data.problem,) if self.data.problem else (),
        )

    def _budget(self, whole: Span, counts: SpanCounts) -> Budget:
        """The budget of *whole*, of which *counts* are known."""
        return Budget(
            target=self.objective.target,
            window=self._seconds(whole),
            measured=60.0 * counts.minutes,
            counts=_settled(counts),
        )

    def _seconds(self, whole: Span) -> float:
        """The length of *whole* without planned maintenance."""
        excluded = self.query.excluded(self.objective, whole)
        return 60.0 * (count_minutes([whole]) - count_minutes(excluded))

    def _projected(self, budget: Budget, window: ReportWindow, burn: float | None) -> float | None:
        """The remaining budget at the end of a running calendar period; None for other windows."""
        if window.kind is not WindowKind.CALENDAR or window.is_finished:
            return None
        return budget.projected(burn, self._seconds(Span(window.end, window.whole.end)))

    def _counted(self, whole: Span) -> tuple[SpanCounts, SpanCounts]:
        """The counts of *whole* without maintenance, and those of maintenance."""
        if self.data.problem:
            return _NOTHING, _NOTHING
        counts, parts = self.data.counts, self.query.excluded(self.objective, whole)
        if not parts:
            return counts[whole], _NOTHING
        excluded = sum((counts[part] for part in parts), _NOTHING)
        left = counts[whole] - excluded
        # The source says how many events it left out itself, and not how many of them were good.
        return left, excluded + SpanCounts(good=left.excluded, total=left.excluded)

    def _coverage(
        self, wholes: Mapping[str, Span], taken: Mapping[str, tuple[SpanCounts, SpanCounts]]
    ) -> Coverage:
        expected = {name: self._expected(wholes[name]) for name in (WINDOW, "1h")}
        counts = taken[WINDOW][0]
        return Coverage(
            window=coverage(counts, expected[WINDOW]),
            hour=coverage(taken["1h"][0], expected["1h"]),
            minutes=counts.minutes,
            expected_minutes=expected[WINDOW],
            known_since=self.data.known_since,
        )

    def _expected(self, whole: Span) -> int:
        """Minutes that should have a sample."""
        excluded = self.query.excluded(self.objective, whole)
        return expected_minutes(whole, excluded, self.data.known_since)

    def _stale_since(self, window: ReportWindow, recent: SpanCounts) -> int | None:
        """The end of the last sample, unless there are recent ones or none are expected."""
        if window.is_finished or recent.minutes:
            return None
        last = self.data.last_seen
        now = self.query.now
        if last is None or last >= now or self._seconds(Span(last, now)) <= 0:
            return None
        return last

    def _with_audit(self, counted: StatusResult) -> StatusResult:
        """Faults that an audit found override a better or unknown status."""
        faults = self.data.confirmation is not None and self.data.confirmation.faults
        if faults and counted.status not in {Status.BREACHED, Status.AT_RISK}:
            return StatusResult(Status.AT_RISK, Reason.AUDIT_FAULTS)
        return counted

    def _pairs(self, burns: Mapping[str, float | None]) -> tuple[PairReading, ...]:
        named = {seconds: burns[name] for name, seconds in WINDOW_SECONDS.items()}
        found = []
        for pair in live_pairs(self.objective):
            long, short = named[pair.long], named[pair.short]
            factor = pair.factor(self.objective.window)
            exceeds_long, exceeds_short = (long or 0.0) > factor, (short or 0.0) > factor
            state = PairState.RECOVERING if exceeds_long else PairState.QUIET
            found.append(
                PairReading(
                    name=pair.name,
                    severity=pair.severity.value,
                    long_seconds=pair.long,
                    short_seconds=pair.short,
                    long=long,
                    short=short,
                    factor=factor,
                    state=PairState.BURNING if exceeds_long and exceeds_short else state,
                )
            )
        return tuple(found)

    def _before(self, span: Span, counts: SpanCounts) -> Comparison | None:
        remaining = self._budget(span, counts).remaining
        if remaining is None:
            return None
        return Comparison(
            start=span.start,
            end=span.end,
            ratio=counts.good / counts.total,
            remaining=remaining,
            coverage=coverage(counts, self._expected(span)),
        )

    def _warnings(self, window: ReportWindow, cover: Coverage, counted: StatusResult) -> list[str]:
        found = []
        if counted.status is Status.NO_DATA and self._with_audit(counted) != counted:
            found.append(counted.reason.value)
        known = cover.known_since
        covered = 1.0 if cover.hour is None or window.is_finished else cover.hour
        if counted.status is not Status.NO_DATA and covered < MIN_COVERAGE:
            found.append("coverage of the last hour is below 90 %")
        if known is not None and window.start < known < window.end:
            observed = _length((window.end - known) / 1000).removesuffix(" days")
            whole = _length((window.end - window.start) / 1000)
            found.append(f"only {observed} of {whole} of data")
        found += [
            f"maintenance {each.id} {_MARKED[each.mark]}"
            for each in self.query.exclusions
            if each.mark is not None
            and each.covers(self.objective.flow)
            and Span(each.start, each.end).overlaps(Span(window.start, window.end))
        ]
        if self.data.confirmation is not None and self.data.confirmation.faults:
            found.append(self.data.confirmation.sentence)
        return found


def _reading(budget: Budget, *, estimate: bool) -> BudgetReading:
    return BudgetReading(
        total=allowed_ratio(budget.target),
        consumed=budget.consumed,
        remaining=budget.remaining,
        seconds=budget.window,
        total_events=budget.total_events,
        remaining_events=budget.total_events - budget.counts.bad,
        total_minutes=budget.total_minutes,
        remaining_minutes=budget.remaining_minutes,
        minutes_are_estimate=estimate,
    )


def _exhaustion(budget: Budget, window: ReportWindow, burn: float | None) -> float | None:
    """Seconds until the budget is exhausted; None for a past calendar period that kept some."""
    found = budget.exhaustion(burn)
    return None if found and window.is_finished else found


def _settled(counts: SpanCounts) -> Counts:
    return Counts(counts.bad, counts.total)


def _length(seconds: float) -> str:
    """*seconds* in days, hours or minutes: `2.5 days`, `5 h`, `4 min`."""
    for unit, size in (("days", 86_400.0), ("h", 3_600.0)):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds / 60:.0f} min"
