"""`/`: the page for people; and what a report and the page tell in depth."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from fastapi import APIRouter, Request, Response

from mm2slo_core.errors import UserError
from mm2slo_core.objectives.status import Status
from mm2slo_report.sources.port import SliSourceError
from mm2slo_report.web.answers import Body
from mm2slo_report.web.describing import described_text
from mm2slo_report.web.problems import Problem
from mm2slo_report.web.service import respond_kept, service_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.reporting.report import Detail, Report
    from mm2slo_report.rendering.views import AuditView, LatencyView
    from mm2slo_report.web.service import Service

_T = TypeVar("_T")

router = APIRouter(tags=["page"])

_HTML: Final = "text/html"
_DETAILED: Final = 4
"""Objectives that are told in depth: each takes its minutes."""
_TOLD: Final = frozenset({Status.BREACHED, Status.WARNING})
_AUDITS: Final = 5
_EVIDENCE: Final = 20


@router.get("/", summary="The page", responses=described_text(_HTML))
def home(request: Request) -> Response:
    """Flows, objectives, what used the budgets, failover, audits: as of now, without scripts."""
    service = service_of(request)
    as_of = service.instant(None)
    return respond_kept(
        request, (as_of,), lambda: _page(service, as_of), service.freshness(None, as_of)
    )


def details(service: Service, report: Report) -> tuple[Detail, ...]:
    """What cost most of the worst objectives; those that cannot be told are left out."""
    over = None if report.window is None else report.window.name
    found: list[Detail] = []
    for entry in report.entries:
        if entry.status in _TOLD and entry.counts.bad > 0 and len(found) < _DETAILED:
            try:
                found.append(service.detail(entry.id, report.as_of, over))
            except SliSourceError:
                continue
    return tuple(found)


def _page(service: Service, as_of: int) -> Body:
    # Read when first asked for: a start need not wait for the templates.
    from mm2slo_report import rendering

    problems: list[str] = []
    report = service.report(as_of)
    audits, latencies = _tried(lambda: _audited(service), problems) or ((), ())
    text = rendering.page(
        report,
        _tried(service.flow_views, problems) or (),
        _tried(service.group_views, problems) or (),
        audits,
        latencies=latencies,
        details=details(service, report),
        references=service.settings.references,
        problems=tuple(dict.fromkeys(problems)),
    )
    return Body.text(text, _HTML, {"Content-Security-Policy": rendering.CONTENT_SECURITY_POLICY})


def _tried(ask: Callable[[], _T], problems: list[str]) -> _T | None:
    """One section's figures; None, with the reason among *problems*, where they are not there."""
    try:
        return ask()
    except (Problem, SliSourceError, UserError) as problem:
        problems.append(str(problem))
        return None


def _audited(service: Service) -> tuple[Sequence[AuditView], Sequence[LatencyView]]:
    from mm2slo_report.rendering.audited import audit_view, latency_view

    # One run may be among the newest and the newest of many flows.
    units = cache(lambda run_id: service.records.units(run_id=run_id))
    views = []
    for run in service.records.runs(limit=_AUDITS):
        evidence = service.records.evidence(run_id=run.header.id, limit=_EVIDENCE)
        views.append(audit_view(run, units(run.header.id), evidence))
    newest = service.records.newest_finished(service.flows)
    found = (latency_view(run, flow, units(run.header.id)) for flow, run in newest.items())
    return views, [each for each in found if each is not None]
