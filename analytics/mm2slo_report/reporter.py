"""Builds reports as of one instant from objectives, SLI history and stored facts.

`Reporter` is the entry; it looks up since when window pairs burn, and reads planned maintenance and
audit results through the port `FactSource`, which `StoreFacts` implements on the results store.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from zoneinfo import ZoneInfo

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.config.config_document import suggest
from mm2slo_core.objectives.exclusion import Exclusion, Span
from mm2slo_core.objectives.objective import Objective, full_slo_id, slo_id
from mm2slo_core.reporting.entry_evaluation import (
    AuditedUnit,
    IndicatorData,
    burning_since,
    confirmation,
    evaluate_entries,
)
from mm2slo_core.reporting.report_entry import (
    Confirmation,
    Entry,
    PairReading,
    PairState,
    ReportWindow,
    worst_first,
)
from mm2slo_core.reporting.report_query import ReportQuery, parse_period
from mm2slo_core.reporting.slo_report import (
    EntryDetail,
    IndicatorHistory,
    Report,
    budget_parts,
    budget_steps,
    by_day,
    chart_step,
    incidents,
    step_spans,
)
from mm2slo_core.reporting.step_counts import (
    Indicator,
    SpanCounts,
    StepCounts,
    count_span,
    whole_minute,
)
from mm2slo_core.topology import Flow
from mm2slo_report.sli_source import SliSource, SliSourceError
from mm2slo_store.audit_rows import Run, StoredUnit

if TYPE_CHECKING:
    from mm2slo_store.store import Store


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
        return None if text is None else parse_period(text, as_of, self.zone)

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

    def detail(self, slo: str, *, at: int | None = None, over: str | None = None) -> EntryDetail:
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
        return EntryDetail(
            entry=entry,
            days=by_day(parts, {each: count_span(history, each) for each in parts}, allowed),
            incidents=incidents(history, entry.budget, objective.key.sli),
        )

    def history(
        self,
        slo: str,
        span: Span | None = None,
        *,
        at: int | None = None,
        length: int | None = None,
    ) -> IndicatorHistory:
        """One objective's SLI over *span* (default: its window) in steps of *length* ms.

        Raises like `detail`, and ValueError for too many steps.
        """
        objective = self.objective(slo)
        query = ReportQuery(objectives=(objective,), as_of=self.instant(at), zone=self.zone)
        window = query.window_of(objective)
        span = Span(window.start, window.end) if span is None else span
        length = chart_step(span) if length is None else length
        parts = step_spans(span, length)
        query = self._planned(query, span)
        return IndicatorHistory(
            objective=objective,
            as_of=query.as_of,
            start=span.start,
            end=span.end,
            length=length,
            steps=budget_steps(
                self._history(query, objective, span),
                parts,
                objective.target,
                60.0 * query.minutes_to_measure(objective, span),
            ),
        )

    def _planned(self, query: ReportQuery, span: Span) -> ReportQuery:
        """*query* with the planned maintenance of *span*."""
        return replace(
            query,
            exclusions=tuple(self.facts.exclusions(span)),
            maintenance_tail_ms=self.source.maintenance_tail_ms,
        )

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
        whole = _whole_span(query)
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
                confirmation=audited[each],
                problem=str(found) if failed else "",
            )
        return with_burn_starts(
            evaluate_entries(planned, answers), partial(self._burning_since, query)
        )

    def _burning_since(
        self, query: ReportQuery, objective: Objective, pair: PairReading, span: Span
    ) -> int | None:
        planned = self._planned(query, span)
        steps = self._history(planned, objective, span)
        left_out = planned.left_out(objective, span)
        return burning_since(pair, objective.target, steps, span, left_out)

    def _confirmed(self, query: ReportQuery) -> Mapping[Indicator, Confirmation | None]:
        """Audit confirmation of each indicator's flow over the window of its objective.

        Not over a longer one of another objective: an entry is the same whichever are asked for.
        """
        windows: dict[Indicator, FlowWindow] = {}
        for each in query.objectives:
            window = query.window_of(each)
            windows[Indicator(each.flow, each.key)] = each.flow, Span(window.start, window.end)
        facts = self.facts.audit_facts(set(windows.values()))
        found = {each: confirmation(units, each[1].end) for each, units in facts.items()}
        return {indicator: found[window] for indicator, window in windows.items()}


def _is_silent(counts: Mapping[Span, SpanCounts] | SliSourceError, recent: Span) -> bool:
    return not isinstance(counts, SliSourceError) and not counts[recent].minutes


def _whole_span(query: ReportQuery) -> Span | None:
    """The union of a query's spans and of all of its period; None without any."""
    spans = query.spans()
    if not spans:
        return None
    if query.window is not None:
        spans = (*spans, query.window.whole)
    return Span(min(each.start for each in spans), max(each.end for each in spans))


BurnSearch = Callable[[Objective, PairReading, Span], int | None]
"""See `burning_since`."""

MAX_BURN_STARTS: Final = 10
"""Of one report: reading the history of every objective would make a list too slow."""
_FIRST_LOOKBACK_MS: Final = 6 * 3_600_000
_LOOKBACK_FACTOR: Final = 4


def with_burn_starts(entries: Sequence[Entry], search: BurnSearch) -> tuple[Entry, ...]:
    """*entries* with `since` set on burning pairs of the worst MAX_OBJECTIVES entries.

    It stays None if the source fails, or if the pair burned throughout the objective's window.
    """
    burning = [each for each in entries if any(map(_is_burning, each.pairs))]
    chosen = {each.id for each in worst_first(burning)[:MAX_BURN_STARTS]}
    return tuple(_with_burn_start(each, search) if each.id in chosen else each for each in entries)


def _with_burn_start(entry: Entry, search: BurnSearch) -> Entry:
    pairs = tuple(
        replace(each, since=_find_burn_start(entry, each, search)) if _is_burning(each) else each
        for each in entry.pairs
    )
    return replace(entry, pairs=pairs)


def _find_burn_start(entry: Entry, pair: PairReading, search: BurnSearch) -> int | None:
    """Search with growing lookback: most burns started recently."""
    window, back = round(entry.objective.window * 1000), _FIRST_LOOKBACK_MS
    while True:
        back = min(back, window)
        span = Span(entry.as_of - back - round(pair.long_seconds * 1000), entry.as_of)
        try:
            found = search(entry.objective, pair, span)
        except SliSourceError:
            return None
        if found is not None or back == window:
            return found
        back *= _LOOKBACK_FACTOR


def _is_burning(pair: PairReading) -> bool:
    return pair.state is PairState.BURNING


_LOSS: Final = "loss"

FlowWindow = tuple[Flow, Span]


class FactSource(Protocol):
    """Planned maintenance and audit results for the reporter."""

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        """Planned maintenance that overlaps *span*."""

    def audit_facts(
        self, windows: Collection[FlowWindow]
    ) -> Mapping[FlowWindow, Sequence[AuditedUnit]]:
        """For each flow and window, the judged units of the flow that overlap the window."""


class StoreFacts:
    """A `FactSource` from the results store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        """Includes removed ones, which may still exclude a part."""
        return self._store.exclusions(overlapping=span)

    def audit_facts(
        self, windows: Collection[FlowWindow]
    ) -> Mapping[FlowWindow, Sequence[AuditedUnit]]:
        """One fact per judged unit; two store queries for any number of flows."""
        found: dict[FlowWindow, list[AuditedUnit]] = {each: [] for each in windows}
        if not windows:
            return found
        by_flow: defaultdict[Flow, list[FlowWindow]] = defaultdict(list)
        for each in windows:
            by_flow[each[0]].append(each)
        spans = [span for _, span in windows]
        whole = Window(min(each.start for each in spans), max(each.end for each in spans))
        units = self._store.units(overlapping=whole, judged=True)
        wanted = {unit.run_id for unit in units}
        runs = {run.header.id: run for run in self._store.runs_by_id(wanted)}
        for unit in units:
            run = runs.get(unit.run_id)
            if run is None:
                # Superseded between the two queries; the superseding run has its own units.
                continue
            fact, judged = _fact(unit, run), Span(unit.window.start, unit.window.end)
            for copied in unit.flows:
                for window in by_flow[copied.flow]:
                    if window[1].overlaps(judged):
                        found[window].append(fact)
        return found


def _fact(unit: StoredUnit, run: Run) -> AuditedUnit:
    bound = next((each.upper for each in unit.bounds if each.name == _LOSS), None)
    opened = unit.oldest_open
    complete = unit.window.end if opened is None else min(unit.window.end, opened)
    has_overdue = unit.counts.get(Verdict.OVERDUE, 0) > 0
    return AuditedUnit(
        run_id=unit.run_id,
        complete_up_to=None if run.complete_up_to is None else complete,
        counts=unit.counts,
        loss_below=None if run.header.sample_rate >= 1 else bound or None,
        topic=unit.key.target_topic,
        started_at=run.header.started_at,
        window=unit.window,
        sample=Sample(run.header.sample_rate, run.header.salt),
        oldest_open=opened,
        overdue_since=opened + unit.max_pending if opened is not None and has_overdue else None,
    )
