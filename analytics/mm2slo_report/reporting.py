"""Reports from a source of history, the ledger and the objectives: one instant, one answer."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.nearest import nearest
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.ids import slo_id
from mm2slo_core.reporting.confirmation import confirmation
from mm2slo_core.reporting.evaluate import Answer, entries
from mm2slo_core.reporting.history import Indicator, counted, whole_minute
from mm2slo_core.reporting.incidents import by_day, incidents
from mm2slo_core.reporting.order import worst_first
from mm2slo_core.reporting.parts import budget_parts
from mm2slo_core.reporting.periods import period
from mm2slo_core.reporting.question import Question
from mm2slo_core.reporting.report import Detail, History, Report
from mm2slo_core.reporting.series import nice_step, series, steps
from mm2slo_report.dating import dated
from mm2slo_report.sources.port import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from zoneinfo import ZoneInfo

    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.entry import Confirmation, Entry, ReportWindow
    from mm2slo_core.reporting.history import MinuteCounts, SpanCounts
    from mm2slo_core.topology import Flow
    from mm2slo_report.ledger import Ledger
    from mm2slo_report.sources.port import SliSource

_NEAR: Final = 3


class UnknownObjectiveError(LookupError):
    """No objective has that id; the text names the nearest one, `near` a few."""

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.near = tuple(near)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Answers for *objectives*; *clock* gives epoch ms. Safe to use from several threads."""

    objectives: Sequence[Objective]
    source: SliSource
    ledger: Ledger
    zone: ZoneInfo
    clock: Callable[[], int]
    _by_id: Mapping[str, Objective] = field(init=False)

    def __post_init__(self) -> None:
        """Objectives by their ids."""
        found = {slo_id(each.flow, each.key): each for each in self.objectives}
        object.__setattr__(self, "_by_id", found)

    def objective(self, slo: str) -> Objective:
        """The objective of that id. Raises UnknownObjectiveError."""
        found = self._by_id.get(slo)
        if found is None:
            close = nearest(slo, self._by_id)
            near = dict.fromkeys(difflib.get_close_matches(slo, self._by_id, n=_NEAR))
            hint = f"did you mean {close!r}?" if close else "see /slo for those that are there"
            raise UnknownObjectiveError(
                f"there is no objective {slo!r}; {hint}",
                tuple(dict.fromkeys((close, *near))) if close else tuple(near),
            )
        return found

    def instant(self, at: int | None) -> int:
        """The whole minute that an answer speaks of: *at*, or now."""
        return whole_minute(self.clock() if at is None else at)

    def window(self, text: str | None, as_of: int) -> ReportWindow | None:
        """The period *text*; None: each objective's own. Raises ValueError."""
        return None if text is None else period(text, as_of, self.zone)

    def report(
        self,
        chosen: Sequence[Objective] | None = None,
        *,
        at: int | None = None,
        over: str | None = None,
        tolerant: bool = False,
    ) -> Report:
        """The entries of *chosen* objectives (None: all), the worst first.

        *over* is a period. Raises ValueError for one that is none, SliSourceError when the source
        can say nothing at all; with *tolerant* each entry says so instead.
        """
        as_of = self.instant(at)
        window = self.window(over, as_of)
        wanted = tuple(self.objectives if chosen is None else chosen)
        found = self._entries(
            Question(objectives=wanted, as_of=as_of, zone=self.zone, window=window),
            tolerant=tolerant,
        )
        longest = max((each.window.end - each.window.start for each in found), default=0)
        return Report(
            as_of=as_of,
            source=self.source.name,
            zone=self.zone.key,
            window=window,
            entries=worst_first(found),
            warnings=tuple(self.source.warnings(longest / 1000)),
        )

    def detail(self, slo: str, *, at: int | None = None, over: str | None = None) -> Detail:
        """What cost most of one objective's budget. Raises as `report` and `objective` do."""
        objective = self.objective(slo)
        as_of = self.instant(at)
        question = Question(
            objectives=(objective,),
            as_of=as_of,
            zone=self.zone,
            window=self.window(over, as_of),
        )
        (entry,) = self._entries(question)
        window = Span(entry.window.start, entry.window.end)
        minutes = self._minutes(question, objective, window)
        told = budget_parts(entry.window, self.zone, entry.coverage.known_since, minutes)
        allowed = entry.budget.total_events
        return Detail(
            entry=entry,
            days=by_day(told, {each: counted(minutes, each) for each in told}, allowed),
            incidents=incidents(minutes, allowed),
        )

    def history(
        self,
        slo: str,
        span: Span | None = None,
        *,
        at: int | None = None,
        length: int | None = None,
    ) -> History:
        """How one objective's indicator went over *span*, its window by default.

        *length* of a step in ms. Raises as `detail` does, ValueError for too many steps.
        """
        objective = self.objective(slo)
        question = Question(objectives=(objective,), as_of=self.instant(at), zone=self.zone)
        window = question.window_of(objective)
        span = Span(window.start, window.end) if span is None else span
        length = nice_step(span) if length is None else length
        parts = steps(span, length)
        minutes = self._minutes(question, objective, span)
        return History(
            objective=objective,
            as_of=question.as_of,
            start=span.start,
            end=span.end,
            length=length,
            steps=series(minutes, parts, objective.target),
        )

    def _minutes(
        self, question: Question, objective: Objective, span: Span
    ) -> tuple[MinuteCounts, ...]:
        """Those of *span* that hold a sample, but for planned maintenance."""
        planned = replace(question, exclusions=tuple(self.ledger.exclusions(span)))
        excluded = planned.excluded(objective, span)
        minutes = self.source.minutes(Indicator(objective.flow, objective.key), span)
        if not excluded:
            return tuple(minutes)
        return tuple(
            each
            for each in minutes
            if not any(part.start <= each.at < part.end for part in excluded)
        )

    def _entries(self, question: Question, *, tolerant: bool = False) -> tuple[Entry, ...]:
        whole = _whole(question)
        if whole is None:
            return ()
        planned = replace(question, exclusions=tuple(self.ledger.exclusions(whole)))
        spans, indicators = planned.spans(), planned.indicators
        counts: Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]
        since: Mapping[Indicator, int | None]
        try:
            counts = self.source.counts(indicators, spans)
            since = self.source.known_since(indicators)
        except SliSourceError as problem:
            if not tolerant:
                raise
            counts, since = dict.fromkeys(indicators, problem), {}
        audited = self._confirmed(planned)
        answers = {}
        for each in indicators:
            found = counts[each]
            failed = isinstance(found, SliSourceError)
            answers[each] = Answer(
                counts={} if isinstance(found, SliSourceError) else found,
                known_since=since.get(each),
                confirmation=audited[each.flow],
                problem=str(found) if failed else "",
            )
        return dated(
            entries(planned, answers), lambda each, span: self._minutes(planned, each, span)
        )

    def _confirmed(self, question: Question) -> Mapping[Flow, Confirmation | None]:
        """Over the longest window of a flow's objectives: one sentence for all of them."""
        spans: dict[Flow, Span] = {}
        for each in question.objectives:
            window, known = question.window_of(each), spans.get(each.flow)
            if known is None or window.end - window.start > known.end - known.start:
                spans[each.flow] = Span(window.start, window.end)
        facts = self.ledger.audit_facts(spans)
        return {flow: confirmation(facts[flow]) for flow in spans}


def _whole(question: Question) -> Span | None:
    """All the time that a question is about; None when it is about nothing."""
    spans = question.spans()
    if not spans:
        return None
    return Span(spans[0].start, max(each.end for each in spans))
