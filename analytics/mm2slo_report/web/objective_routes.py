"""`/slo/{id}`: one objective, its history, window pairs and definition."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.report_periods import ACCEPTED
from mm2slo_core.reporting.step_counts import whole_minute
from mm2slo_report.rendering.entry_models import Entry
from mm2slo_report.rendering.report_models import Alerts, Detail, History
from mm2slo_report.rendering.value_format import utc
from mm2slo_report.web import query_parameters
from mm2slo_report.web.content_negotiation import prefers_html
from mm2slo_report.web.http_responses import YAML, Body
from mm2slo_report.web.problem_details import invalid_parameter
from mm2slo_report.web.report_service import respond_cached, service_of
from mm2slo_report.web.response_docs import describe_responses, text_formats

if TYPE_CHECKING:
    from mm2slo_core.reporting import slo_report
    from mm2slo_report.web.report_service import ReportService

router = APIRouter(tags=["objectives"])

_MAX_HISTORY_MS: Final = 100 * 86_400_000

Id = Annotated[
    str, Path(description="Objective id, such as `us-to-eu-availability`.", max_length=200)
]
At = Annotated[
    str | None,
    Query(
        description="A past instant (RFC 3339); default: now.",
        json_schema_extra=query_parameters.INSTANT,
    ),
]
Period = Annotated[
    str | None,
    Query(
        description=f"Such as {ACCEPTED}; default: the objective's own window.",
        json_schema_extra=query_parameters.PERIOD,
    ),
]


class SpecFormat(StrEnum):
    """Values of the parameter `format`."""

    NATIVE = "native"
    OPENSLO = "openslo"


@router.get(
    "/slo/{slo}",
    summary="One objective with days and incidents",
    response_model=Detail,
    responses=describe_responses(formats=text_formats("text/html")),
)
def one(request: Request, slo: Id, at: At = None, period: Period = None) -> Response:
    """The entry as in the list, and the error budget spent by each day and incident.

    With less than two days of data, `days` holds shorter steps. An incident is a run of steps of
    five minutes with bad events, with gaps of up to 5 minutes. Browsers get a page (by `Accept`).
    """
    service = service_of(request)
    service.reporter.objective(slo)
    as_of = service.instant(at)
    service.check_period(period, as_of)
    as_page = prefers_html(request.headers.get("accept"))

    def make() -> Body:
        detail = service.detail(slo, as_of, period)
        if as_page:
            return _page(service, detail, period)
        return Body.json(Detail.of(detail, service.settings.references))

    return respond_cached(
        request,
        (as_of, period, as_page),
        make,
        service.freshness(at, as_of),
        charged=True,
        vary="Accept",
    )


def _page(service: ReportService, detail: slo_report.Detail, period: str | None) -> Body:
    # Imported on first use to keep the start fast.
    from mm2slo_report import rendering

    entry = detail.entry
    report = replace(service.report(entry.as_of, period), entries=(entry,))
    text = rendering.as_html(report, [detail], references=service.settings.references)
    return Body.text(
        text, "text/html", {"Content-Security-Policy": rendering.CONTENT_SECURITY_POLICY}
    )


@router.get(
    "/slo/{slo}/history",
    summary="History",
    response_model=History,
    responses=describe_responses(),
)
def history(
    request: Request,
    slo: Id,
    start: Annotated[
        str | None,
        Query(
            alias="from",
            description="Start (RFC 3339); default: one window ago.",
            json_schema_extra=query_parameters.INSTANT,
        ),
    ] = None,
    end: Annotated[
        str | None,
        Query(
            alias="to",
            description="End (RFC 3339); default: now.",
            json_schema_extra=query_parameters.INSTANT,
        ),
    ] = None,
    step: Annotated[
        str | None,
        Query(
            description="Such as `5m`, `1h`, `1d`; at most 2,000 steps.",
            json_schema_extra=query_parameters.STEP,
        ),
    ] = None,
) -> Response:
    """Event counts by step, without planned maintenance; default: the objective's window."""
    service = service_of(request)
    objective = service.reporter.objective(slo)
    now, as_of = service.now, service.instant(None)
    until = as_of
    if end is not None:
        until = min(as_of, whole_minute(query_parameters.parse_instant("to", end, now)))
    since = until - round(objective.window * 1000)
    if start is not None:
        since = whole_minute(query_parameters.parse_instant("from", start, now))
    if not 0 <= since < until:
        raise invalid_parameter(
            "from", f"no whole minute from {utc(max(since, 0))} to {utc(until)}"
        )
    if until - since > _MAX_HISTORY_MS:
        raise invalid_parameter("from", "more than 100d; request shorter parts")
    span = Span(since, until)
    length = None if step is None else query_parameters.parse_step("step", step)

    def make() -> Body:
        try:
            found = service.history(slo, span, as_of, length)
        except ValueError as error:
            raise invalid_parameter("step", f"step {step!r}: {error}", "5m", "1h", "1d") from None
        return Body.json(History.of(found))

    return respond_cached(
        request, (since, until, as_of, length), make, service.freshness(end, until), charged=True
    )


@router.get(
    "/slo/{slo}/alerts",
    summary="Window pairs and burn rates",
    response_model=Alerts,
    responses=describe_responses(),
)
def alerts(request: Request, slo: Id, at: At = None) -> Response:
    """Both burn rates of each window pair, its alert threshold and its state."""
    service = service_of(request)
    service.reporter.objective(slo)
    as_of = service.instant(at)

    def make() -> Body:
        entry, _ = service.entry(slo, as_of, None)
        return Body.json(Alerts.model_validate(Entry.of(entry)))

    return respond_cached(request, (as_of,), make, service.freshness(at, as_of), charged=True)


@router.get(
    "/slo/{slo}/spec",
    summary="Definition of the objective",
    response_class=Response,
    responses=describe_responses(formats={YAML: {"type": "object"}}),
)
def spec(
    request: Request,
    slo: Id,
    output_format: Annotated[
        SpecFormat, Query(alias="format", description="Output format.")
    ] = SpecFormat.NATIVE,
) -> Response:
    """YAML: the `slo:` section of mm2slo.yaml for this objective, or OpenSLO v1."""
    service = service_of(request)
    objective = service.reporter.objective(slo)

    def make() -> Body:
        # Imported on first use to keep the start fast.
        from mm2slo_core.config.slo_section import render_slo_section
        from mm2slo_core.objectives.openslo import render_openslo

        renderers = {
            SpecFormat.NATIVE: render_slo_section,
            SpecFormat.OPENSLO: render_openslo,
        }
        return Body.text(renderers[output_format]((objective,)), YAML)

    return respond_cached(request, (output_format,), make, service.freshness(None, service.now))
