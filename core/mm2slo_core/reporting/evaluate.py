"""From counts to entries: how each objective stands, and how anybody can know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import WINDOW_SECONDS
from mm2slo_core.objectives.budget import Budget, burn_rate
from mm2slo_core.objectives.evaluation import Counts
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
    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.entry import Confirmation, ReportWindow
    from mm2slo_core.reporting.question import Question

_SLICED: Final = frozenset({Sli.DATA_FRESHNESS, Sli.CHECKPOINT_FRESHNESS})
"""Indicators that count slices of time: their budget in minutes is no estimate."""
_NOTHING: Final = SpanCounts()


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
            window=window.seconds,
            counts=Counts(counts.bad, counts.total),
        )
        burns = {name: self._burn(taken[name][0]) for name in WINDOW_SECONDS}
        cover = self._coverage(wholes, taken)
        stands = self._standing(budget, burns, cover)
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
            exhaustion_seconds=budget.exhaustion(burns["1h"]),
            projected_remaining=_projected(budget, window, burns["1h"]),
            pairs=self._pairs(burns),
            coverage=cover,
            before=self._before(wholes[BEFORE], taken[BEFORE][0]),
            confirmation=self.answer.confirmation,
            warnings=tuple(self._warnings(window, cover)),
            errors=(self.answer.problem,) if self.answer.problem else (),
        )

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
        expected = {
            name: expected_minutes(
                wholes[name],
                self.question.excluded(self.objective, wholes[name]),
                self.answer.known_since,
            )
            for name in (WINDOW, "1h")
        }
        counts = taken[WINDOW][0]
        return Coverage(
            window=coverage(counts, expected[WINDOW]),
            hour=coverage(taken["1h"][0], expected["1h"]),
            minutes=counts.minutes,
            expected_minutes=expected[WINDOW],
            known_since=self.answer.known_since,
        )

    def _standing(
        self, budget: Budget, burns: Mapping[str, float | None], cover: Coverage
    ) -> Standing:
        known = self.answer.known_since
        unknown = known is None or known >= self.question.now
        # An hour that is all maintenance misses nothing.
        hour = 1.0 if cover.hour is None else cover.hour
        found = standing(
            self.objective,
            budget,
            {seconds: burns[name] for name, seconds in WINDOW_SECONDS.items()},
            coverage=None if unknown else hour,
            # What was seen all along and counted nothing has nothing to count.
            idle=not unknown and hour > 0,
        )
        faults = self.answer.confirmation is not None and self.answer.confirmation.faults
        if faults and found.status in {Status.OK, Status.IDLE}:
            # What an audit saw in the records outranks what canaries did not see.
            return Standing(Status.WARNING, Reason.AUDIT_FOUND)
        return found

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
        if counts.total <= 0:
            return None
        burn = self._burn(counts)
        return Comparison(
            begin=span.begin,
            end=span.end,
            ratio=counts.good / counts.total,
            remaining=None if burn is None else 1.0 - burn,
        )

    def _warnings(self, window: ReportWindow, cover: Coverage) -> list[str]:
        found = []
        known = cover.known_since
        if known is not None and window.begin < known < window.end:
            lived, whole = (window.end - known) / 1000, (window.end - window.begin) / 1000
            found.append(f"young: known for {_length(lived)} of {_length(whole)}")
        if self.answer.confirmation is not None and self.answer.confirmation.faults:
            found.append(self.answer.confirmation.sentence)
        return found


def _reading(budget: Budget, *, estimate: bool) -> BudgetReading:
    return BudgetReading(
        total=budget.total_ratio,
        consumed=budget.consumed,
        remaining=budget.remaining,
        total_events=budget.total_events,
        remaining_events=budget.remaining_events,
        total_minutes=budget.total_minutes,
        remaining_minutes=budget.remaining_minutes,
        minutes_are_estimate=estimate,
    )


def _projected(budget: Budget, window: ReportWindow, burn: float | None) -> float | None:
    """At the end of a calendar period that runs; of a rolling window there is no end."""
    ahead = window.seconds - (window.end - window.begin) / 1000
    if window.kind is not WindowKind.CALENDAR or ahead <= 0:
        return None
    return budget.projected(burn, ahead)


def _length(seconds: float) -> str:
    """A length in the largest unit that shows it to a tenth."""
    for unit, size in (("d", 86_400.0), ("h", 3_600.0)):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + unit
    return f"{seconds / 60:.0f}m"
