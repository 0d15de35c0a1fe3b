"""Reports for the request handlers: cached, rate-limited, and as of one instant."""

from __future__ import annotations

import copy
import threading
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

from mm2slo_core.objectives.exclusion_document import matching_flows
from mm2slo_core.reporting.incidents import may_have_incident
from mm2slo_core.reporting.report_periods import ACCEPTED
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, whole_minute
from mm2slo_report.sources.sli_source import SliSourceError
from mm2slo_report.web import http_responses
from mm2slo_report.web.newest_audits import NewestAudits
from mm2slo_report.web.problem_details import ProblemError, invalid_parameter
from mm2slo_report.web.query_parameters import parse_instant
from mm2slo_report.web.rate_limiter import RateLimiter
from mm2slo_report.web.request_guard import CALLER, TOKEN
from mm2slo_report.web.result_cache import Cache
from mm2slo_report.web.scoped_records import ScopedRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from fastapi import Request, Response

    from mm2slo_core.objectives import Objective
    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.reporting.slo_report import Detail, History, Report
    from mm2slo_core.topology import Flow
    from mm2slo_report.rendering.page_views import FlowView, GroupView
    from mm2slo_report.reporter import Reporter
    from mm2slo_report.web.http_responses import Body, Freshness
    from mm2slo_report.web.scoped_records import Records
    from mm2slo_report.web.service_ports import FlowStatus, Maintenance, RecorderStatus
    from mm2slo_report.web.service_settings import Settings
    from mm2slo_report.web.tokens import Token

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
        self._reports: Cache[Report] = Cache(seconds=settings.cache_seconds, capacity=_REPORTS)
        self._details: Cache[Detail] = Cache(seconds=settings.cache_seconds, capacity=_DETAILS)
        self._bodies: Cache[Body] = Cache(
            seconds=settings.cache_seconds,
            capacity=_BODIES_BYTES,
            size=lambda body: len(body.content),
        )
        self._flows: Cache[tuple[FlowView, ...]] = Cache(seconds=_FLOW_STATUS_SECONDS, capacity=1)
        self._groups: Cache[tuple[GroupView, ...]] = Cache(seconds=_FLOW_STATUS_SECONDS, capacity=1)
        self._limiter = RateLimiter(settings.reports_per_minute)
        self._scope: tuple[Flow, ...] | None = None
        """None: all flows."""

    def visible_to(self, token: Token | None) -> ReportService:
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

    @property
    def objectives(self) -> tuple[Objective, ...]:
        return tuple(self.reporter.objectives)

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

    def entry(self, slo: str, as_of: int, over: str | None) -> tuple[Entry, Report]:
        """One objective, from a cached report if possible. Raises UnknownObjectiveError."""
        objective = self.reporter.objective(slo)
        report = self._reports.peek((self._scope, as_of, over))
        if report is None:
            report = self._without_addresses(
                self.reporter.report((objective,), at=as_of, over=over, tolerant=True)
            )
        return next(each for each in report.entries if each.objective == objective), report

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

    def detail(self, slo: str, as_of: int, over: str | None) -> Detail:
        """Days and incidents that spent a budget. Raises UnknownObjectiveError."""
        return self._details.get(
            (self._scope, slo, as_of, over), lambda: self.reporter.detail(slo, at=as_of, over=over)
        )

    def costly_details(self, report: Report) -> Iterator[Detail]:
        """Details of all objectives that may have incidents; those that fail are left out."""
        over = None if report.window is None else report.window.name
        for entry in report.entries:
            if may_have_incident(entry):
                with suppress(SliSourceError):
                    yield self.detail(entry.id, report.as_of, over)

    def history(self, slo: str, span: Span | None, as_of: int, length: int | None) -> History:
        """One objective over time. Raises UnknownObjectiveError."""
        return self.reporter.history(slo, span, at=as_of, length=length)

    def flow_views(self) -> tuple[FlowView, ...]:
        """Current state of the flows. Raises SliSourceError; ProblemError without an exporter."""
        status = self._require_flow_status()
        found = self._flows.get("", lambda: tuple(status.flows()))
        return tuple(each for each in found if self.sees(each.flow))

    def group_views(self) -> tuple[GroupView, ...]:
        """Current failover readiness of groups. Raises like `flow_views`."""
        status = self._require_flow_status()
        found = self._groups.get("", lambda: tuple(status.groups()))
        return tuple(each for each in found if self.sees(each.flow))

    def freshness(self, at: str | None, as_of: int) -> Freshness:
        """How long clients may reuse a response about *as_of*."""
        settled = at is not None and as_of < self.now - _SETTLED_MS
        return http_responses.PAST if settled else http_responses.CURRENT

    def cached_body(
        self, key: Hashable, make: Callable[[], Body], *, caller: str | None = None
    ) -> Body:
        """The cached response of *key*; computing it counts against *caller*'s rate limit."""

        def build() -> Body:
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
    make: Callable[[], Body],
    freshness: Freshness,
    *,
    charged: bool = False,
    vary: str = "",
) -> Response:
    """The response cached under the request's path and *key*, else built by *make*."""
    body = service_of(request).cached_body(
        (request.url.path, *key), make, caller=caller_of(request) if charged else None
    )
    return http_responses.respond(request, body, freshness, vary=vary)
