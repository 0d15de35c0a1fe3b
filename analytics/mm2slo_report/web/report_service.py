"""Reports for the request handlers: cached, rate-limited, and as of one instant.

A token that is limited to some flows gets a view of `ReportService` and of the stored records. Its
ports to planned maintenance, recorder and exporters, the cache and the rate limiter follow.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from fastapi import Request, Response

from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.cutover.cutover_checks import CutoverPhase, GateQuestion
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence, CutoverTerms
from mm2slo_core.objectives.exclusion import Exclusion, Span, matching_flows
from mm2slo_core.reporting.report_entry import Entry
from mm2slo_core.reporting.report_query import ACCEPTED
from mm2slo_core.reporting.slo_report import (
    EntryDetail,
    IndicatorHistory,
    Report,
)
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, whole_minute
from mm2slo_core.topology import Flow
from mm2slo_report.access_tokens import AccessToken
from mm2slo_report.cutover_facts import audit_fact, budget_fact
from mm2slo_report.flow_audit_figures import AuditFigures, audit_figures
from mm2slo_report.rendering.page_views import FlowStatusView, GroupView
from mm2slo_report.reporter import Reporter
from mm2slo_report.service_settings import Settings
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web import http_responses
from mm2slo_report.web.http_responses import (
    ProblemError,
    ResponseBody,
    invalid_parameter,
)
from mm2slo_report.web.request_checks import CALLER, TOKEN, parse_instant
from mm2slo_store.audit_rows import (
    EvidencePlace,
    Run,
    RunPlace,
    RunState,
    StoredEvidence,
    StoredUnit,
)

if TYPE_CHECKING:
    from mm2slo_report.recording.recorder_history import RecorderHealth
    from mm2slo_store.store import Store


T = TypeVar("T")
_BODIES_BYTES: Final = 24 * 1024 * 1024
_REPORTS: Final = 16
_DETAILS: Final = 64
_FLOW_STATUS_SECONDS: Final = 10.0
_HIDDEN_ERROR: Final = "not available; the log of this service has the reason"

_SETTLED_MS: Final = 2 * MINUTE_MS
"""Older minutes no longer change."""


class ReportService:
    """The report service without HTTP. Thread-safe."""

    def __init__(
        self,
        reporter: Reporter,
        records: Records,
        settings: Settings,
        flow_status: FlowStatus | None = None,
        recorder: RecorderStatus | None = None,
        *,
        maintenance: Maintenance,
        missing_rules: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """*missing_rules* lists rules that Prometheus has not loaded; None if none are expected."""
        self.recorder = recorder
        self.maintenance = maintenance
        self.missing_rules = missing_rules or tuple
        self.maintenance_lock = threading.Lock()
        """Held while planned maintenance changes."""
        self.reporter = reporter
        self.records = records
        self.settings = settings
        self.audits = NewestAudits(records)
        self._flow_status = flow_status
        self._reports: ResultCache[Report] = ResultCache(
            seconds=settings.cache_seconds, capacity=_REPORTS
        )
        self._details: ResultCache[EntryDetail] = ResultCache(
            seconds=settings.cache_seconds, capacity=_DETAILS
        )
        self._bodies: ResultCache[ResponseBody] = ResultCache(
            seconds=settings.cache_seconds,
            capacity=_BODIES_BYTES,
            size=lambda body: len(body.content),
        )
        self._flows: ResultCache[tuple[FlowStatusView, ...]] = ResultCache(
            seconds=_FLOW_STATUS_SECONDS, capacity=1
        )
        self._groups: ResultCache[tuple[GroupView, ...]] = ResultCache(
            seconds=_FLOW_STATUS_SECONDS, capacity=1
        )
        self._limiter = RateLimiter(settings.reports_per_minute)
        self._scope: tuple[Flow, ...] | None = None
        """None: all flows."""

    def visible_to(self, token: AccessToken | None) -> ReportService:
        """This service, or a view of it that knows only the flows of *token*.

        The view shares the caches; their keys contain its flows.
        """
        if token is None or token.flows is None:
            return self
        view = copy.copy(self)
        view._scope = matching_flows(token.flows, self.flows)
        own = [each for each in self.reporter.objectives if each.flow in view._scope]
        view.reporter = replace(self.reporter, objectives=own)
        view.records = ScopedRecords(self.records, view._scope, self.flows, token.name)
        return view

    @property
    def is_scoped(self) -> bool:
        """Whether it is limited to the flows of a token."""
        return self._scope is not None

    def sees(self, flow: Flow) -> bool:
        """Whether *flow* may be named."""
        return self._scope is None or flow in self._scope

    @property
    def now(self) -> int:
        """Epoch ms."""
        return self.reporter.clock()

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Flows with objectives, in the order of the configuration."""
        return tuple(dict.fromkeys(each.flow for each in self.reporter.objectives))

    def instant(self, at: str | None) -> int:
        """The whole minute of *at* or now. Raises ProblemError."""
        now = self.now
        return self._newest(now) if at is None else whole_minute(parse_instant("at", at, now))

    def check_period(self, over: str | None, as_of: int) -> None:
        """Raise ProblemError unless *over* is a valid period."""
        try:
            self.reporter.window(over, as_of)
        except ValueError as error:
            raise invalid_parameter(
                "period", str(error), *ACCEPTED.replace(" or ", ", ").split(", ")
            ) from None

    def report(self, as_of: int, over: str | None = None) -> Report:
        """All objectives as of *as_of*; a current report includes warnings of the recorder.

        If the source fails, each entry carries the error.
        """

        def build() -> Report:
            found = self.reporter.report(at=as_of, over=over, tolerant=True)
            if self.recorder is not None and as_of >= self.now - _SETTLED_MS:
                remarks = self.recorder.health.remarks
                found = replace(found, warnings=(*found.warnings, *remarks))
            return self._without_addresses(found)

        return self._reports.get((self._scope, as_of, over), build)

    def entry(self, slo: str, as_of: int) -> Entry:
        """One objective, from a cached report if possible. Raises UnknownObjectiveError."""
        objective = self.reporter.objective(slo)
        report = self._reports.peek((self._scope, as_of, None))
        if report is None:
            report = self._without_addresses(
                self.reporter.report((objective,), at=as_of, tolerant=True)
            )
        return next(each for each in report.entries if each.objective == objective)

    def shown(self, error: str) -> str:
        """*error*, or that there is one: a token of some flows learns no address of a server."""
        return _HIDDEN_ERROR if self.is_scoped else error

    def _without_addresses(self, report: Report) -> Report:
        if not self.is_scoped:
            return report
        return replace(
            report,
            entries=tuple(
                replace(each, errors=(_HIDDEN_ERROR,) if each.errors else ())
                for each in report.entries
            ),
            warnings=tuple(each for each in report.warnings if "://" not in each),
        )

    def detail(self, slo: str, as_of: int, over: str | None) -> EntryDetail:
        """Days and incidents that spent a budget. Raises UnknownObjectiveError."""
        return self._details.get(
            (self._scope, slo, as_of, over), lambda: self.reporter.detail(slo, at=as_of, over=over)
        )

    def details(self, report: Report, wanted: Callable[[Entry], bool]) -> Iterator[EntryDetail]:
        """Details of the *wanted* entries of *report*; those that cannot be read are left out."""
        over = None if report.window is None else report.window.name
        for entry in filter(wanted, report.entries):
            with suppress(SliSourceError):
                yield self.detail(entry.id, report.as_of, over)

    def history(
        self, slo: str, span: Span | None, as_of: int, length: int | None
    ) -> IndicatorHistory:
        """One objective over time. Raises UnknownObjectiveError."""
        return self.reporter.history(slo, span, at=as_of, length=length)

    def flow_views(self) -> tuple[FlowStatusView, ...]:
        """Current state of the flows. Raises SliSourceError; ProblemError without an exporter."""
        status = self._require_flow_status()
        found = self._flows.get("", lambda: tuple(status.flows()))
        return tuple(each for each in found if self.sees(each.flow))

    def group_views(self) -> tuple[GroupView, ...]:
        """Current failover readiness of groups. Raises like `flow_views`."""
        status = self._require_flow_status()
        found = self._groups.get("", lambda: tuple(status.groups()))
        return tuple(each for each in found if self.sees(each.flow))

    def cutover_question(
        self, flow: Flow, phase: CutoverPhase, terms: CutoverTerms
    ) -> GateQuestion | None:
        """What the gate of a cutover judges; None until an exporter has read it.

        Raises like `flow_views`.
        """
        evidence = self._require_flow_status().cutover(flow)
        if evidence is None:
            return None
        budget = None
        if phase is CutoverPhase.READY:
            entries = self.report(self.instant(None)).entries
            budget = budget_fact(each for each in entries if each.objective.flow == flow)
        audit = audit_fact(self.audits.figures_of([flow]).get(flow))
        return GateQuestion(phase, evidence, terms, audit, budget)

    def freshness(self, at: str | None, as_of: int) -> str:
        """`Cache-Control` of a response about *as_of*."""
        settled = at is not None and as_of < self.now - _SETTLED_MS
        return http_responses.PAST if settled else http_responses.CURRENT

    def cached_body(
        self, key: Hashable, make: Callable[[], ResponseBody], *, caller: str | None = None
    ) -> ResponseBody:
        """The cached response of *key*; computing it counts against *caller*'s rate limit."""

        def build() -> ResponseBody:
            if caller is not None:
                self._limiter.take(caller)
            return make()

        return self._bodies.get((self._scope, key), build)

    def clear_caches(self) -> None:
        """Drop cached figures after stored data changed."""
        self._reports.clear()
        self._details.clear()
        self._bodies.clear()

    def _newest(self, now: int) -> int:
        """The last whole minute; as a step ends, the one before until the recorder has stored it.

        In a short history, one missing step would lower coverage noticeably.
        """
        minute = whole_minute(now)
        until = None if self.recorder is None else self.recorder.health.recorded_until
        return minute - MINUTE_MS if until == minute - STEP_MS else minute

    def _require_flow_status(self) -> FlowStatus:
        if self._flow_status is None:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "no-exporter",
                "no exporter is configured: set report.recorder.exporters",
            )
        return self._flow_status


def service_of(request: Request) -> ReportService:
    """The service as the caller's token sees it."""
    service: ReportService = request.app.state.service
    return service.visible_to(request.scope[TOKEN])


def caller_of(request: Request) -> str:
    caller: str = request.scope[CALLER]
    return caller


def respond_cached(
    request: Request,
    key: tuple[object, ...],
    make: Callable[[], ResponseBody],
    cache: str,
    *,
    charged: bool = False,
    vary: str = "",
) -> Response:
    """The response cached under the request's path and *key*, else built by *make*."""
    body = service_of(request).cached_body(
        (request.url.path, *key), make, caller=caller_of(request) if charged else None
    )
    return http_responses.respond(request, body, cache, vary=vary)


class Effects(Protocol):
    """Effects of planned maintenance outside of reports, one sentence each."""

    @property
    def done(self) -> Sequence[str]:
        """What was done."""

    @property
    def problems(self) -> Sequence[str]:
        """What failed, and what to do."""


class Maintenance(Protocol):
    """Applies stored planned maintenance to burn rules and silences. Never raises."""

    def silence_problem(self, new: Exclusion, now: int, *, requested: bool | None) -> str:
        """Why *new* cannot be silenced although *requested*; empty if it can or need not.

        None requests the configured default, if possible.
        """

    def apply_added(
        self, new: Exclusion, now: int, *, silence: bool | None
    ) -> tuple[Exclusion, Effects]:
        """Apply *new*; returns it with its silence."""

    def apply_removed(self, removed: Exclusion, now: int) -> Effects:
        """Revert *removed*."""


class RecorderStatus(Protocol):
    """The recorder of the embedded history, such as `recording.recorder.Recorder`."""

    @property
    def health(self) -> RecorderHealth:
        """Current health."""


class FlowStatus(Protocol):
    """Current state from the exporters, the worst of replicas. Raises SliSourceError."""

    def flows(self) -> Sequence[FlowStatusView]:
        """Current state of the flows."""

    def groups(self) -> Sequence[GroupView]:
        """Failover readiness of consumer groups."""

    def cutover(self, flow: Flow) -> CutoverEvidence | None:
        """What a cutover of *flow* depends on; None until an exporter has read it."""


_AUDIT_SECONDS: Final = 3_600.0
_AUDIT_RUNS: Final = 256


class NewestAudits:
    """Queries the newest runs, and reads units and evidence only of new runs. Thread-safe."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._cache: ResultCache[Mapping[Flow, AuditFigures]] = ResultCache(
            seconds=_AUDIT_SECONDS, capacity=_AUDIT_RUNS
        )

    def figures_of(self, flows: Sequence[Flow]) -> Mapping[Flow, AuditFigures]:
        """Figures of each of *flows* with a finished audit, in that order. Raises UserError."""
        newest = self._records.newest_finished(flows)
        by_run: dict[str, list[Flow]] = {}
        for flow, run in newest.items():
            by_run.setdefault(run.header.id, []).append(flow)
        found: dict[Flow, AuditFigures] = {}
        for run_id, of_run in by_run.items():
            run = newest[of_run[0]]
            # A run changes when it is published again or a later run supersedes units of it.
            key = (run_id, run.finished_at, run.superseded_units, tuple(of_run))
            found.update(self._cache.get(key, partial(self._figures, run, of_run)))
        return {flow: found[flow] for flow in newest}

    def _figures(self, run: Run, flows: Sequence[Flow]) -> Mapping[Flow, AuditFigures]:
        units = self._records.units(run_id=run.header.id)
        evidence = self._records.count_evidence(run.header.id)
        return {flow: audit_figures(run, flow, units, evidence) for flow in flows}


_BATCH: Final = 500
HIDDEN_NAME: Final = "another user"
HIDDEN_VERDICT: Final = "not shown: this run also audited other flows"


class ScopedRecords:
    """The *records* of *flows*, of all that are *configured*.

    A run of other flows does not exist, and one that audited others too has neither their names nor
    its verdict on all. Names of others than the *caller* are hidden. A topic that several flows
    feed has one count for all of them.
    """

    def __init__(
        self, records: Records, flows: Collection[Flow], configured: Collection[Flow], caller: str
    ) -> None:
        self._records = records
        self._caller = caller
        self._flows = frozenset(flows)
        self._others = frozenset(configured) - self._flows

    def runs(
        self,
        *,
        flow: Flow | None = None,
        after: RunPlace | None = None,
        limit: int | None = None,
    ) -> Sequence[Run]:
        return tuple(islice(self._visible(self._all_runs(flow, after)), limit))

    def runs_by_id(self, run_ids: Collection[str]) -> Sequence[Run]:
        return tuple(self._visible(self._records.runs_by_id(run_ids)))

    def count_runs(self, *, flow: Flow | None = None) -> Mapping[RunState, int]:
        found = Counter(each.state for each in self.runs(flow=flow))
        return {state: found[state] for state in RunState}

    def newest_finished(self, flows: Collection[Flow]) -> Mapping[Flow, Run]:
        newest = self._records.newest_finished([each for each in flows if each in self._flows])
        return {flow: self._narrowed(run) for flow, run in newest.items()}

    def units(self, *, run_id: str | None = None) -> Sequence[StoredUnit]:
        found = self._records.units(run_id=run_id)
        return tuple(
            unit for unit in found if not self._flows.isdisjoint(each.flow for each in unit.flows)
        )

    def evidence(
        self,
        *,
        run_id: str | None = None,
        verdicts: Collection[Verdict] = (),
        after: EvidencePlace | None = None,
        limit: int | None = None,
    ) -> Sequence[StoredEvidence]:
        found = self._all_evidence(run_id, verdicts, after)
        return tuple(islice((each for each in found if each.flow in self._flows), limit))

    def count_evidence(self, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
        return self._records.count_evidence(run_id)

    def exclusions(self, *, flow: Flow | None = None) -> Sequence[Exclusion]:
        """Names only the token's flows if others are excluded too."""
        found = []
        for each in self._records.exclusions(flow=flow):
            own = sorted(flow.label for flow in self._flows if each.covers(flow))
            if own:
                flows = tuple(own) if self._affects_others(each) else each.flows
                found.append(replace(self._without_names(each), flows=flows))
        return tuple(found)

    def add_exclusion(self, exclusion: Exclusion, *, flows: Iterable[Flow]) -> None:
        self._records.add_exclusion(exclusion, flows=flows)

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Raises ProblemError (403) if it excludes other flows too."""
        for each in self._records.exclusions():
            if each.id == exclusion_id and self._affects_others(each):
                raise ProblemError(
                    HTTPStatus.FORBIDDEN,
                    "scope",
                    f"{exclusion_id!r} excludes other flows too: remove it with a token for all "
                    "of its flows",
                )
        return self._without_names(self._records.remove_exclusion(exclusion_id, who=who))

    def _without_names(self, exclusion: Exclusion) -> Exclusion:
        known = (self._caller, None)
        return replace(
            exclusion,
            who=exclusion.who if exclusion.who in known else HIDDEN_NAME,
            removed_by=exclusion.removed_by if exclusion.removed_by in known else HIDDEN_NAME,
        )

    def _affects_others(self, exclusion: Exclusion) -> bool:
        return any(exclusion.covers(flow) for flow in self._others)

    def _visible(self, runs: Iterable[Run]) -> Iterator[Run]:
        for each in runs:
            if not self._flows.isdisjoint(each.header.flows):
                yield self._narrowed(each)

    def _narrowed(self, run: Run) -> Run:
        own = tuple(each for each in run.header.flows if each in self._flows)
        if own == run.header.flows:
            return run
        verdict = None if run.verdict_line is None else HIDDEN_VERDICT
        header = replace(run.header, flows=own)
        return replace(run, header=header, exit_code=None, verdict_line=verdict, bytes_read=None)

    def _all_runs(self, flow: Flow | None, after: RunPlace | None) -> Iterator[Run]:
        """In batches: the store cannot filter by several flows."""
        while batch := self._records.runs(flow=flow, after=after, limit=_BATCH):
            yield from batch
            after = RunPlace(batch[-1].header.started_at, batch[-1].header.id)

    def _all_evidence(
        self, run_id: str | None, verdicts: Collection[Verdict], after: EvidencePlace | None
    ) -> Iterator[StoredEvidence]:
        while batch := self._records.evidence(
            run_id=run_id, verdicts=verdicts, after=after, limit=_BATCH
        ):
            yield from batch
            after = batch[-1].place


Records: TypeAlias = "Store | ScopedRecords"
"""Stored audits and planned maintenance. Every method raises UserError on database errors."""
V = TypeVar("V")


class _CacheEntry(NamedTuple, Generic[V]):
    value: V
    until: float
    size: int


class ResultCache(Generic[V]):
    """Caches values of a total *size* up to *capacity* for *seconds*.

    Thread-safe: concurrent callers of a key share one computation. Errors reach all of them and
    are not cached.
    """

    def __init__(
        self,
        *,
        seconds: float,
        capacity: int,
        size: Callable[[V], int] = lambda _: 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._capacity = capacity
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _CacheEntry[V]] = OrderedDict()
        self._pending: dict[Hashable, Future[V]] = {}
        self._used = 0
        self._generation = 0

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The cached value of *key*, else the result of *make*. Raises what *make* raises."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None and found.until > self._clock():
                self._entries.move_to_end(key)
                return found.value
            pending = self._pending.get(key)
            computes = pending is None
            if pending is None:
                pending = self._pending[key] = Future()
            generation = self._generation
        if not computes:
            return pending.result()
        return self._compute(key, make, pending, generation)

    def peek(self, key: Hashable) -> V | None:
        """The value of *key* if cached, without computing it."""
        with self._lock:
            found = self._entries.get(key)
            return found.value if found is not None and found.until > self._clock() else None

    def clear(self) -> None:
        """Drop all values, including those being computed from the previous state."""
        with self._lock:
            self._entries.clear()
            self._pending.clear()
            self._used = 0
            self._generation += 1

    def _compute(
        self, key: Hashable, make: Callable[[], V], pending: Future[V], generation: int
    ) -> V:
        try:
            value = make()
        except BaseException as error:
            self._remove_pending(key, pending)
            pending.set_exception(error)
            raise
        with self._lock:
            if generation == self._generation:
                self._store(key, value)
        self._remove_pending(key, pending)
        pending.set_result(value)
        return value

    def _remove_pending(self, key: Hashable, pending: Future[V]) -> None:
        with self._lock:
            if self._pending.get(key) is pending:
                del self._pending[key]

    def _store(self, key: Hashable, value: V) -> None:
        previous = self._entries.pop(key, None)
        if previous is not None:
            self._used -= previous.size
        size = self._size(value)
        if size > self._capacity:
            return
        self._entries[key] = _CacheEntry(value, self._clock() + self._seconds, size)
        self._used += size
        while self._used > self._capacity:
            _, oldest = self._entries.popitem(last=False)
            self._used -= oldest.size


_MAX_CALLERS: Final = 10_000
"""The least recent callers are dropped; their buckets are full again by then."""


class RateLimiter:
    """A token bucket of *per_minute* for each caller."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Take one token. Raises ProblemError (429) with Retry-After."""
        rate = self._per_minute / 60
        with self._lock:
            now = self._clock()
            left, at = self._buckets.pop(caller, (float(self._per_minute), now))
            left = min(float(self._per_minute), left + (now - at) * rate)
            allowed = left >= 1
            self._buckets[caller] = (left - 1 if allowed else left, now)
            if len(self._buckets) > _MAX_CALLERS:
                self._buckets.popitem(last=False)
        if not allowed:
            seconds = math.ceil((1 - left) / rate)
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too-many-requests",
                f"more than {self._per_minute} uncached responses per minute; retry in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )
