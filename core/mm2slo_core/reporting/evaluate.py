"""From counts to entries: how each objective stands, and how anybody can know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import WINDOW_SECONDS
from mm2slo_core.objectives.budget import Budget, burn_rate
from mm2slo_core.objectives.evaluation import Counts
from mm2slo_core.objectives.exclusion import Mark, Span
from mm2slo_core.objectives.ids import slo_id
from mm2slo_core.objectives.status import Reason, Standing, Status, standing
from mm2slo_core.objectives.traffic import live_pairs
from mm2slo_core.reporting.coverage import coverage, expected_minutes
from mm2slo_core.reporting.entry import (
    BudgetReading,
    Comparison,
    Coverage,
    Entry,
    PairReading,
    PairState,
    WindowKind,
)
from mm2slo_core.reporting.history import Indicator, SpanCounts
from mm2slo_core.reporting.question import BEFORE, WINDOW
from mm2slo_core.sli import Sli

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.entry import Confirmation, ReportWindow
    from mm2slo_core.reporting.question import Question

_SLICED: Final = frozenset({Sli.DATA_FRESHNESS, Sli.CHECKPOINT_FRESHNESS})
"""Indicators that count slices of time: their budget in minutes is no estimate."""
_NOTHING: Final = SpanCounts()
_MARKED: Final = {
    Mark.ADDED_LATE: "was added late: rules had counted events that are left out here",
    Mark.TAKEN_BACK: "was taken back: rules had left out events that are counted here",
}
_COARSE: Final = (
    "kept by the hour: events within an hour of an edge of the period, or of maintenance, may be "
    "on its other side"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a source of history knows of one indicator, and what audits found of its flow."""

    counts: Mapping[Span, SpanCounts]
    known_since: int | None
    confirmation: Confirmation | None = None
    problem: str = ""
    """Why there are no counts; empty when there are."""


def entries(question: Question, answers: Mapping[Indicator, Answer]) -> tuple[Entry, ...]:
    """One entry per objective, in the order of the question."""
    return tuple(
        _Evaluation(question, each, answers[Indicator(each.flow, each.key)]).entry()
        for each in question.objectives
    )


@dataclass(frozen=True, slots=True)
class _Evaluation:
    question: Question
    objective: Objective
    answer: Answer

    def entry(self) -> Entry:
        window = self.question.window_of(self.objective)
        wholes = self.question.wholes_of(self.objective)
        taken = {name: self._counted(whole) for name, whole in wholes.items()}
        counts, excluded = taken[WINDOW]
        budget = Budget(
            target=self.objective.target,
            window=self._known_seconds(window),
            counts=Counts(counts.bad, counts.total),
        )
        burns = {name: self._burn(taken[name][0]) for name in WINDOW_SECONDS}
        cover = self._coverage(wholes, taken)
        counted = self._standing(budget, burns, cover)
        stands = self._overruled(counted)
        return Entry(
            id=slo_id(self.objective.flow, self.objective.key),
            objective=self.objective,
            window=window,
            as_of=self.question.now,
            status=stands.status,
            reason=stands.reason,
            pair=stands.pair,
            counts=counts,
            excluded=excluded,
            ratio=counts.good / counts.total if counts.total > 0 else None,
            budget=_reading(budget, estimate=self.objective.key.sli not in _SLICED),
            burn_rates=burns,
            exhaustion_seconds=_exhaustion(budget, window, burns["1h"]),
            projected_remaining=_projected(budget, window, burns["1h"]),
            pairs=self._pairs(burns),
            coverage=cover,
            before=self._before(wholes[BEFORE], taken[BEFORE][0]),
            confirmation=self.answer.confirmation,
            warnings=tuple(self._warnings(window, cover, counted, coarse=counts.coarse)),
            errors=(self.answer.problem,) if self.answer.problem else (),
        )

    def _known_seconds(self, window: ReportWindow) -> float:
        """The length of *window* without what lies before the first datum.

        Its events are of that time, and so is the budget that they have.
        """
        known = self.answer.known_since
        if known is None or not window.start < known < window.end:
            return window.seconds
        return window.seconds - (known - window.start) / 1000

    def _counted(self, whole: Span) -> tuple[SpanCounts, SpanCounts]:
        """The counts of *whole* without maintenance, and those of the maintenance in it."""
        if self.answer.problem:
            return _NOTHING, _NOTHING
        counts, parts = self.answer.counts, self.question.excluded(self.objective, whole)
        if not parts:
            return counts[whole], _NOTHING
        excluded = sum((counts[part] for part in parts), _NOTHING)
        return counts[whole] - excluded, excluded

    def _burn(self, counts: SpanCounts) -> float | None:
        return burn_rate(Counts(counts.bad, counts.total), self.objective.target)

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
            known_since=self.answer.known_since,
        )

    def _expected(self, whole: Span) -> int:
        """Minutes that should hold a sample."""
        excluded = self.question.excluded(self.objective, whole)
        return expected_minutes(whole, excluded, self.answer.known_since)

    def _standing(
        self, budget: Budget, burns: Mapping[str, float | None], cover: Coverage
    ) -> Standing:
        known = self.answer.known_since
        unknown = known is None or known >= self.question.now
        # An hour that is all maintenance misses nothing.
        hour = 1.0 if cover.hour is None else cover.hour
        return standing(
            self.objective,
            budget,
            {seconds: burns[name] for name, seconds in WINDOW_SECONDS.items()},
            coverage=None if unknown else hour,
        )

    def _overruled(self, counted: Standing) -> Standing:
        """What an audit saw in the records outranks what canaries did not see, or did not know."""
        faults = self.answer.confirmation is not None and self.answer.confirmation.faults
        if faults and counted.status not in {Status.BREACHED, Status.WARNING}:
            return Standing(Status.WARNING, Reason.AUDIT_FOUND)
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
        burn = self._burn(counts)
        if burn is None:
            return None
        return Comparison(
            start=span.start,
            end=span.end,
            ratio=counts.good / counts.total,
            remaining=1.0 - burn,
            coverage=coverage(counts, self._expected(span)),
        )

    def _warnings(
        self, window: ReportWindow, cover: Coverage, counted: Standing, *, coarse: bool
    ) -> list[str]:
        found = []
        if counted.status is Status.NO_DATA and self._overruled(counted) != counted:
            found.append(counted.reason.value)
        known = cover.known_since
        if known is not None and window.start < known < window.end:
            lived, whole = (window.end - known) / 1000, (window.end - window.start) / 1000
            found.append(f"young: known for {_length(lived)} of {_length(whole)}")
        if coarse:
            found.append(_COARSE)
        found += [
            f"maintenance {each.id} {_MARKED[each.mark]}"
            for each in self.question.exclusions
            if each.mark is not None
            and each.covers(self.objective.flow)
            and Span(each.start, each.end).overlaps(Span(window.start, window.end))
        ]
        if self.answer.confirmation is not None and self.answer.confirmation.faults:
            found.append(self.answer.confirmation.sentence)
        return found


def _reading(budget: Budget, *, estimate: bool) -> BudgetReading:
    return BudgetReading(
        total=budget.total_ratio,
        consumed=budget.consumed,
        remaining=budget.remaining,
        seconds=budget.window,
        total_events=budget.total_events,
        remaining_events=budget.remaining_events,
        total_minutes=budget.total_minutes,
        remaining_minutes=budget.remaining_minutes,
        minutes_are_estimate=estimate,
    )


def _exhaustion(budget: Budget, window: ReportWindow, burn: float | None) -> float | None:
    """Seconds until nothing is left, by the whole window's length also while little is known.

    None too where a period was over before: the next one has a budget of its own.
    """
    found = replace(budget, window=window.seconds).exhaustion(burn)
    return None if found and window.kind is WindowKind.CALENDAR and not _ahead(window) else found


def _projected(budget: Budget, window: ReportWindow, burn: float | None) -> float | None:
    """At the end of a calendar period that runs; of a rolling window there is no end."""
    if window.kind is not WindowKind.CALENDAR or not _ahead(window):
        return None
    return budget.projected(burn, _ahead(window))


def _ahead(window: ReportWindow) -> float:
    """Seconds of a calendar period that are to come."""
    return max(window.seconds - (window.end - window.start) / 1000, 0.0)


def _length(seconds: float) -> str:
    """A length in the largest unit that shows it to a tenth."""
    for unit, size in (("d", 86_400.0), ("h", 3_600.0)):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + unit
    return f"{seconds / 60:.0f}m"
