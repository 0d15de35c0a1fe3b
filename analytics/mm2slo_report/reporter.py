"""Builds reports as of one instant from the objectives, SLI history and stored facts."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.suggestion import suggest
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.slo_ids import full_slo_id, slo_id
from mm2slo_core.reporting.audit_confirmation import confirmation
from mm2slo_core.reporting.budget_series import budget_parts, chart_step, series, steps
from mm2slo_core.reporting.entry_evaluation import IndicatorData, entries
from mm2slo_core.reporting.entry_order import worst_first
from mm2slo_core.reporting.incidents import by_day, incidents
from mm2slo_core.reporting.report_periods import period
from mm2slo_core.reporting.report_query import ReportQuery, count_minutes
from mm2slo_core.reporting.slo_report import Detail, History, Report
from mm2slo_core.reporting.step_counts import Indicator, counted, whole_minute
from mm2slo_report.burn_start import with_burn_starts
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from zoneinfo import ZoneInfo

    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.report_entry import Confirmation, Entry, ReportWindow
    from mm2slo_core.reporting.step_counts import SpanCounts, StepCounts
    from mm2slo_core.topology import Flow
    from mm2slo_report.sources.sli_source import SliSource
    from mm2slo_report.stored_facts import FactSource

_MAX_SUGGESTIONS: Final = 3


class UnknownObjectiveError(LookupError):
    """No objective has that id; `near` lists similar ids."""

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.near = tuple(near)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Reports on *objectives*; *clock* returns epoch ms. Thread-safe."""

    objectives: Sequence[Objective]
    source: SliSource
    facts: FactSource
    zone: ZoneInfo
    clock: Callable[[], int]
    _by_id: Mapping[str, Objective] = field(init=False)

    def __post_init__(self) -> None:
        """Index the objectives by id, shortened or not."""
        found = {full_slo_id(each.flow, each.key): each for each in self.objectives}
        found |= {slo_id(each.flow, each.key): each for each in self.objectives}
        object.__setattr__(self, "_by_id", found)

    def objective(self, slo: str) -> Objective:
        """The objective with the id *slo*. Raises UnknownObjectiveError."""
        found = self._by_id.get(slo)
        if found is None:
            close = suggest(slo, self._by_id)
            near = dict.fromkeys(difflib.get_close_matches(slo, self._by_id, n=_MAX_SUGGESTIONS))
            hint = f"did you mean {close!r}?" if close else "see /slo for all objectives"
            raise UnknownObjectiveError(
                f"unknown objective {slo!r}; {hint}",
                tuple(dict.fromkeys((close, *near))) if close else tuple(near),
            )
        return found

    def instant(self, at: int | None) -> int:
        """*at* or now, rounded down to a whole minute."""
        return whole_minute(self.clock() if at is None else at)

    def window(self, text: str | None, as_of: int) -> ReportWindow | None:
        """Parse the period *text*; None means each objective's own window. Raises ValueError."""
        return None if text is None else period(text, as_of, self.zone)

    def report(
        self,
        chosen: Sequence[Objective] | None = None,
        *,
        at: int | None = None,
        over: str | None = None,
        tolerant: bool = False,
    ) -> Report:
        """Entries of the *chosen* objectives (None: all) over the period *over*, worst first.

        Raises ValueError for an invalid period, and SliSourceError when the source fails; with
        *tolerant*, each entry carries that error instead.
        """
        as_of = self.instant(at)
        window = self.window(over, as_of)
        selected = tuple(self.objectives if chosen is None else chosen)
        found = self._entries(
            ReportQuery(objectives=selected, as_of=as_of, zone=self.zone, window=window),
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
        """Days and incidents that spent one budget. Raises like `report` and `objective`."""
        objective = self.objective(slo)
        as_of = self.instant(at)
        query = ReportQuery(
            objectives=(objective,),
            as_of=as_of,
            zone=self.zone,
            window=self.window(over, as_of),
        )
        (entry,) = self._entries(query)
        window = Span(entry.window.start, entry.window.end)
        history = self._history(self._planned(query, window), objective, window)
        parts = budget_parts(entry.window, self.zone, entry.coverage.known_since, history)
        allowed = entry.budget.total_events
        return Detail(
            entry=entry,
            days=by_day(parts, {each: counted(history, each) for each in parts}, allowed),
            incidents=incidents(history, entry.budget, objective.key.sli),
        )

    def history(
        self,
        slo: str,
        span: Span | None = None,
        *,
        at: int | None = None,
        length: int | None = None,
    ) -> History:
        """One objective's SLI over *span* (default: its window) in steps of *length* ms.

        Raises like `detail`, and ValueError for too many steps.
        """
        objective = self.objective(slo)
        query = ReportQuery(objectives=(objective,), as_of=self.instant(at), zone=self.zone)
        window = query.window_of(objective)
        span = Span(window.start, window.end) if span is None else span
        length = chart_step(span) if length is None else length
        parts = steps(span, length)
        query = self._planned(query, span)
        excluded = query.excluded(objective, span)
        return History(
            objective=objective,
            as_of=query.as_of,
            start=span.start,
            end=span.end,
            length=length,
            steps=series(
                self._history(query, objective, span),
                parts,
                objective.target,
                60.0 * (count_minutes([span]) - count_minutes(excluded)),
            ),
        )

    def _planned(self, query: ReportQuery, span: Span) -> ReportQuery:
        """*query* with the planned maintenance of *span*."""
        return replace(query, exclusions=tuple(self.facts.exclusions(span)))

    def _history(
        self, query: ReportQuery, objective: Objective, span: Span
    ) -> tuple[StepCounts, ...]:
        """Measured steps of *span*, without planned maintenance of *query*."""
        excluded = query.excluded(objective, span)
        history = self.source.steps(Indicator(objective.flow, objective.key), span)
        if not excluded:
            return tuple(history)
        return tuple(
            each
            for each in history
            if not any(part.start < each.end <= part.end for part in excluded)
        )

    def _entries(self, query: ReportQuery, *, tolerant: bool = False) -> tuple[Entry, ...]:
        whole = _whole(query)
        if whole is None:
            return ()
        planned = self._planned(query, whole)
        spans, indicators = planned.spans(), planned.indicators
        counts: Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]
        since: Mapping[Indicator, int | None]
        last: Mapping[Indicator, int | None]
        try:
            counts = self.source.counts(indicators, spans)
            since = self.source.known_since(indicators)
            silent = [each for each in indicators if _is_silent(counts[each], planned.recent)]
            last = self.source.last_seen(silent, planned.now) if silent else {}
        except SliSourceError as problem:
            if not tolerant:
                raise
            counts, since, last = dict.fromkeys(indicators, problem), {}, {}
        audited = self._confirmed(planned)
        answers = {}
        for each in indicators:
            found = counts[each]
            failed = isinstance(found, SliSourceError)
            answers[each] = IndicatorData(
                counts={} if isinstance(found, SliSourceError) else found,
                known_since=since.get(each),
                last_seen=last.get(each),
                confirmation=audited[each.flow],
                problem=str(found) if failed else "",
            )
        return with_burn_starts(
            entries(planned, answers),
            lambda each, span: self._history(self._planned(query, span), each, span),
        )

    def _confirmed(self, query: ReportQuery) -> Mapping[Flow, Confirmation | None]:
        """Audit confirmation of each flow, over the longest window of its objectives."""
        spans: dict[Flow, Span] = {}
        for each in query.objectives:
            window, known = query.window_of(each), spans.get(each.flow)
            if known is None or window.end - window.start > known.end - known.start:
                spans[each.flow] = Span(window.start, window.end)
        found = self.facts.audit_facts(spans)
        return {flow: confirmation(found[flow], span.end) for flow, span in spans.items()}


def _is_silent(counts: Mapping[Span, SpanCounts] | SliSourceError, recent: Span) -> bool:
    return not isinstance(counts, SliSourceError) and not counts[recent].minutes


def _whole(query: ReportQuery) -> Span | None:
    """The union of a query's spans and of all of its period; None without any."""
    spans = query.spans()
    if not spans:
        return None
    if query.window is not None:
        spans = (*spans, query.window.whole)
    return Span(min(each.start for each in spans), max(each.end for each in spans))
