"""What the handlers share: figures that are kept for a moment, and one instant per answer."""

from __future__ import annotations

import threading
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

from mm2slo_core.reporting.history import MINUTE_MS, whole_minute
from mm2slo_core.reporting.periods import ACCEPTED
from mm2slo_report.web import answers
from mm2slo_report.web.caching import Cache
from mm2slo_report.web.guard import CALLER
from mm2slo_report.web.limiting import Limiter
from mm2slo_report.web.maintaining import ReportsAlone
from mm2slo_report.web.newest_audits import NewestAudits
from mm2slo_report.web.parameters import instant
from mm2slo_report.web.problems import Problem, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from fastapi import Request, Response

    from mm2slo_core.objectives import Objective
    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.reporting.report import Detail, History, Report
    from mm2slo_core.topology import Flow
    from mm2slo_report.rendering.views import FlowView, GroupView
    from mm2slo_report.reporting import Reporter
    from mm2slo_report.web.answers import Body, Freshness
    from mm2slo_report.web.ports import Maintenance, Recording, Records, Surroundings
    from mm2slo_report.web.settings import Settings

    T = TypeVar("T")

_BODIES: Final = 24 * 1024 * 1024
"""Bytes."""
_REPORTS: Final = 6
_DETAILS: Final = 32
_NEARBY_SECONDS: Final = 10.0
_SETTLED_MS: Final = 2 * MINUTE_MS
"""What is older is past: nothing that is counted now is about it."""


class Service:
    """The report service without HTTP. Safe to use from several threads."""

    def __init__(
        self,
        reporter: Reporter,
        records: Records,
        settings: Settings,
        surroundings: Surroundings | None = None,
        recorder: Recording | None = None,
        *,
        maintenance: Maintenance | None = None,
        missing_rules: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """*missing_rules* tells what Prometheus has not loaded; None: nothing is expected there."""
        self.recorder = recorder
        self.maintenance: Maintenance = maintenance or ReportsAlone()
        self.missing_rules = missing_rules or tuple
        self.changing = threading.Lock()
        """Held by who changes planned maintenance."""
        self.reporter = reporter
        self.records = records
        self.settings = settings
        self.audits = NewestAudits(records)
        self._surroundings = surroundings
        self._reports: Cache[Report] = Cache(seconds=settings.kept_seconds, capacity=_REPORTS)
        self._details: Cache[Detail] = Cache(seconds=settings.kept_seconds, capacity=_DETAILS)
        self._bodies: Cache[Body] = Cache(
            seconds=settings.kept_seconds, capacity=_BODIES, size=lambda body: len(body.content)
        )
        self._flows: Cache[tuple[FlowView, ...]] = Cache(seconds=_NEARBY_SECONDS, capacity=1)
        self._groups: Cache[tuple[GroupView, ...]] = Cache(seconds=_NEARBY_SECONDS, capacity=1)
        self._limiter = Limiter(settings.reports_per_minute)

    @property
    def now(self) -> int:
        """Epoch ms."""
        return self.reporter.clock()

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Those that have an objective, each once, in the order of the configuration."""
        return tuple(dict.fromkeys(each.flow for each in self.reporter.objectives))

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """All of them."""
        return tuple(self.reporter.objectives)

    def instant(self, at: str | None) -> int:
        """The instant of an answer, a whole minute. Raises Problem."""
        now = self.now
        return self._newest(now) if at is None else whole_minute(instant("at", at, now))

    def check_period(self, over: str | None, as_of: int) -> None:
        """Raise Problem unless *over* is a period."""
        try:
            self.reporter.window(over, as_of)
        except ValueError as error:
            raise refused(
                "period", str(error), *ACCEPTED.replace(" or ", ", ").split(", ")
            ) from None

    def report(self, as_of: int, over: str | None = None) -> Report:
        """All objectives at *as_of*; now, with what is wrong with the recorder.

        Where the source cannot answer, each of them says so.
        """

        def made() -> Report:
            found = self.reporter.report(at=as_of, over=over, tolerant=True)
            if self.recorder is None or as_of < self.now - _SETTLED_MS:
                return found
            return replace(found, warnings=(*found.warnings, *self.recorder.health.remarks))

        return self._reports.get((as_of, over), made)

    def entry(self, slo: str, as_of: int, over: str | None) -> tuple[Entry, Report]:
        """One objective, from a kept report of all or of it alone. Raises UnknownObjectiveError."""
        objective = self.reporter.objective(slo)
        report = self._reports.peek((as_of, over))
        if report is None:
            report = self.reporter.report((objective,), at=as_of, over=over, tolerant=True)
        return next(each for each in report.entries if each.id == slo), report

    def detail(self, slo: str, as_of: int, over: str | None) -> Detail:
        """What cost most of one objective's budget. Raises UnknownObjectiveError."""
        return self._details.get(
            (slo, as_of, over), lambda: self.reporter.detail(slo, at=as_of, over=over)
        )

    def history(self, slo: str, span: Span | None, as_of: int, length: int | None) -> History:
        """How one objective went. Raises UnknownObjectiveError."""
        return self.reporter.history(slo, span, at=as_of, length=length)

    def flow_views(self) -> tuple[FlowView, ...]:
        """How the flows are now. Raises Problem without an exporter, SliSourceError."""
        nearby = self._nearby()
        return self._flows.get("", lambda: tuple(nearby.flows()))

    def group_views(self) -> tuple[GroupView, ...]:
        """What groups would find at a failover now. Raises Problem, SliSourceError."""
        nearby = self._nearby()
        return self._groups.get("", lambda: tuple(nearby.groups()))

    def freshness(self, at: str | None, as_of: int) -> Freshness:
        """How long an answer about *as_of* may be used."""
        settled = at is not None and as_of < self.now - _SETTLED_MS
        return answers.PAST if settled else answers.NOW

    def body(self, key: Hashable, make: Callable[[], Body], *, caller: str | None = None) -> Body:
        """What is answered to *key*; where it must be made, *caller* is charged for it."""

        def made() -> Body:
            if caller is not None:
                self._limiter.take(caller)
            return make()

        return self._bodies.get(key, made)

    def forget(self) -> None:
        """What is stored has changed: figures are worked out anew."""
        self._reports.clear()
        self._details.clear()
        self._bodies.clear()

    def _newest(self, now: int) -> int:
        """The last whole minute; the one before while the recorder is about to store it.

        In a short history, a minute that is only just missing would be much that is not known.
        """
        minute = whole_minute(now)
        until = None if self.recorder is None else self.recorder.health.recorded_until
        return minute - MINUTE_MS if until == minute - MINUTE_MS else minute

    def _nearby(self) -> Surroundings:
        if self._surroundings is None:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "no-exporter",
                "no exporter is known to this service: set report.recorder.exporters",
            )
        return self._surroundings


def service_of(request: Request) -> Service:
    """The service that the application was made from."""
    service: Service = request.app.state.service
    return service


def caller_of(request: Request) -> str:
    """By what the caller is told from others."""
    caller: str = request.scope[CALLER]
    return caller


def asked(**parameters: object) -> Mapping[str, object]:
    """The parameters of a question, for keys and cursors."""
    return parameters


def respond_kept(
    request: Request,
    key: tuple[object, ...],
    make: Callable[[], Body],
    freshness: Freshness,
    *,
    charged: bool = False,
    vary: str = "",
) -> Response:
    """The answer to *key* under the request's path, made by *make* unless it is kept."""
    body = service_of(request).body(
        (request.url.path, *key), make, caller=caller_of(request) if charged else None
    )
    return answers.respond(request, body, freshness, vary=vary)
