"""`/slo` and `/slo/{id}`: the list of objectives, and one with history, pairs and definition."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import WithJsonSchema

from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.objectives.error_budget import Status
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting import slo_report
from mm2slo_core.reporting.report_entry import Entry, headline, utc_text
from mm2slo_core.reporting.report_query import ACCEPTED
from mm2slo_core.reporting.slo_report import Report
from mm2slo_core.reporting.step_counts import whole_minute
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.report_models import (
    ObjectiveAlerts,
    ObjectiveDetail,
    ObjectiveEntry,
    ObjectiveHistory,
    ObjectivePage,
)
from mm2slo_report.web import request_checks
from mm2slo_report.web.http_responses import (
    YAML,
    ResponseBody,
    describe_responses,
    invalid_parameter,
    text_formats,
)
from mm2slo_report.web.report_service import ReportService, respond_cached, service_of
from mm2slo_report.web.request_checks import prefers_html

list_router = APIRouter(tags=["objectives"])
LIMIT: Final = 100
MAX_LIMIT: Final = 1_000


class ObjectiveSort(StrEnum):
    """Sort order; entries without the value come last."""

    WORST = "worst"
    """By status, then by remaining budget."""
    BUDGET_REMAINING = "budget_remaining"
    """Lowest first."""
    BURN_RATE = "burn_rate"
    """Of the last hour, highest first."""
    COVERAGE = "coverage"
    """Lowest first."""
    ID = "id"


@list_router.get(
    "/slo",
    summary="All objectives, worst first",
    response_model=ObjectivePage,
    responses=describe_responses(),
)
def slos(  # noqa: PLR0917 - FastAPI passes them by name
    request: Request,
    flow: Annotated[
        list[str], Query(description="Labels or slugs of flows, such as `us->eu`.")
    ] = [],  # noqa: B006 - FastAPI copies it
    sli: Annotated[
        list[Annotated[str, WithJsonSchema(request_checks.enum_schema(Sli))]],
        Query(description="SLI types."),
    ] = [],  # noqa: B006
    status: Annotated[
        list[Annotated[str, WithJsonSchema(request_checks.enum_schema(Status))]],
        Query(description="Only these statuses."),
    ] = [],  # noqa: B006
    sort: Annotated[ObjectiveSort, Query(description="Sort order.")] = ObjectiveSort.WORST,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Page size.")] = LIMIT,
    cursor: Annotated[str | None, Query(description="`next` of the previous page.")] = None,
    at: At = None,
    period: Period = None,
) -> Response:
    """Figures over *period* or each objective's own window, as of one instant (`as_of`).

    An objective whose SLI cannot be read has the status `no_data` and the reason in `errors`.
    """
    service = service_of(request)
    flows = request_checks.parse_flows(flow, service.flows)
    slis = request_checks.parse_enum("sli", sli, Sli)
    statuses = request_checks.parse_enum("status", status, Status)
    query = {
        "flow": [each.label for each in flows], "sli": slis, "status": statuses, "sort": sort,
        "at": at, "period": period,
    }  # fmt: skip
    start = None if cursor is None else request_checks.decode_cursor(cursor, query)
    as_of = service.instant(at) if start is None else start.as_of
    if as_of > service.now:
        raise invalid_parameter("cursor", "invalid cursor; its instant is in the future")
    service.check_period(period, as_of)

    def make() -> ResponseBody:
        report = service.report(as_of, period)
        found = sorted(_selected_entries(report, flows, slis, statuses), key=_SORT_KEYS[sort])
        first = 0 if start is None else _place_after(found, start.after)
        page = tuple(found[first : first + limit])
        further = len(found) > first + limit
        following = request_checks.PageCursor(page[-1].id, as_of) if further else None
        return ResponseBody.json(
            ObjectivePage.of(
                replace(report, entries=page),
                service.settings.references,
                headline=headline(found),
                total=len(found),
                next=None if following is None else request_checks.encode_cursor(following, query),
            )
        )

    key = (str(query), limit, cursor, as_of)
    # A cursor holds an instant too, and clients can forge one.
    costly = period is not None or as_of != service.instant(None)
    return respond_cached(
        request, key, make, service.freshness(at or cursor, as_of), charged=costly
    )


def _selected_entries(
    report: Report, flows: Collection[Flow], slis: Collection[Sli], statuses: Collection[Status]
) -> list[Entry]:
    return [
        each
        for each in report.entries
        if (not flows or each.objective.flow in flows)
        and (not slis or each.objective.key.sli in slis)
        and (not statuses or each.status in statuses)
    ]


def _place_after(entries: list[Entry], after: str) -> int:
    for place, each in enumerate(entries, 1):
        if each.id == after:
            return place
    raise invalid_parameter(
        "cursor", "the list has changed since the previous page; start again without a cursor"
    )


def _ascending(value: float | None) -> tuple[bool, float]:
    return (value is None, value or 0.0)


_SORT_KEYS: Final[dict[ObjectiveSort, Callable[[Entry], Any]]] = {
    # Already the order of the report; sorting is stable.
    ObjectiveSort.WORST: lambda _: 0,
    ObjectiveSort.BUDGET_REMAINING: lambda each: (*_ascending(each.budget.remaining), each.id),
    ObjectiveSort.BURN_RATE: lambda each: (
        *_ascending(None if (rate := each.burn_rates.get("1h")) is None else -rate),
        each.id,
    ),
    ObjectiveSort.COVERAGE: lambda each: (*_ascending(each.coverage.window), each.id),
    ObjectiveSort.ID: lambda each: each.id,
}
objective_router = APIRouter(tags=["objectives"])
_MAX_HISTORY_MS: Final = 100 * 86_400_000

ObjectiveId = Annotated[
    str, Path(description="Objective id, such as `us-to-eu-availability`.", max_length=200)
]

At = Annotated[
    str | None,
    Query(
        description="A past instant (RFC 3339); default: now.",
        json_schema_extra=request_checks.INSTANT_SCHEMA,
    ),
]

Period = Annotated[
    str | None,
    Query(
        description=f"Such as {ACCEPTED}; default: the objective's own window.",
        json_schema_extra=request_checks.PERIOD_SCHEMA,
    ),
]


class SpecFormat(StrEnum):
    """Values of the parameter `format`."""

    NATIVE = "native"
    OPENSLO = "openslo"


@objective_router.get(
    "/slo/{slo}",
    summary="One objective with days and incidents",
    response_model=ObjectiveDetail,
    responses=describe_responses(formats=text_formats("text/html")),
)
def one(request: Request, slo: ObjectiveId, at: At = None, period: Period = None) -> Response:
    """The entry as in the list, and the error budget spent by each day and incident.

    If its data starts less than two days before the end of the period, `days` holds shorter steps.
    An incident is a run of steps of five minutes with bad events, with gaps of up to 5 minutes.
    Browsers get a page (by `Accept`).
    """
    service = service_of(request)
    service.reporter.objective(slo)
    as_of = service.instant(at)
    service.check_period(period, as_of)
    as_page = prefers_html(request.headers.get("accept"))

    def make() -> ResponseBody:
        detail = service.detail(slo, as_of, period)
        if as_page:
            return _objective_page(service, detail, period)
        return ResponseBody.json(ObjectiveDetail.of(detail, service.settings.references))

    return respond_cached(
        request,
        (as_of, period, as_page),
        make,
        service.freshness(at, as_of),
        charged=True,
        vary="Accept",
    )


def _objective_page(
    service: ReportService, detail: slo_report.EntryDetail, period: str | None
) -> ResponseBody:
    # Imported on first use to keep the start fast.
    from mm2slo_report.rendering import report_html

    entry = detail.entry
    report = replace(service.report(entry.as_of, period), entries=(entry,))
    text = report_html.as_html(report, [detail], references=service.settings.references)
    return ResponseBody.text(
        text, "text/html", {"Content-Security-Policy": report_html.CONTENT_SECURITY_POLICY}
    )


@objective_router.get(
    "/slo/{slo}/history",
    summary="History",
    response_model=ObjectiveHistory,
    responses=describe_responses(),
)
def history(
    request: Request,
    slo: ObjectiveId,
    start: Annotated[
        str | None,
        Query(
            alias="from",
            description="Start (RFC 3339); default: one window ago.",
            json_schema_extra=request_checks.INSTANT_SCHEMA,
        ),
    ] = None,
    end: Annotated[
        str | None,
        Query(
            alias="to",
            description="End (RFC 3339); default: now.",
            json_schema_extra=request_checks.INSTANT_SCHEMA,
        ),
    ] = None,
    step: Annotated[
        str | None,
        Query(
            description="Such as `5m`, `1h`, `1d`; at most 2,000 steps.",
            json_schema_extra=request_checks.STEP_SCHEMA,
        ),
    ] = None,
) -> Response:
    """Event counts by step, without planned maintenance; default: the objective's window."""
    service = service_of(request)
    objective = service.reporter.objective(slo)
    now, as_of = service.now, service.instant(None)
    until = as_of
    if end is not None:
        until = min(as_of, whole_minute(request_checks.parse_instant("to", end, now)))
    since = until - round(objective.window * 1000)
    if start is not None:
        since = whole_minute(request_checks.parse_instant("from", start, now))
    if not 0 <= since < until:
        raise invalid_parameter(
            "from", f"no whole minute from {utc_text(max(since, 0))} to {utc_text(until)}"
        )
    if until - since > _MAX_HISTORY_MS:
        raise invalid_parameter("from", "more than 100d; request shorter parts")
    span = Span(since, until)
    length = None if step is None else request_checks.parse_step(step)

    def make() -> ResponseBody:
        try:
            found = service.history(slo, span, as_of, length)
        except ValueError as error:
            raise invalid_parameter("step", f"step {step!r}: {error}", "5m", "1h", "1d") from None
        return ResponseBody.json(ObjectiveHistory.of(found))

    return respond_cached(
        request, (since, until, as_of, length), make, service.freshness(end, until), charged=True
    )


@objective_router.get(
    "/slo/{slo}/alerts",
    summary="Window pairs and burn rates",
    response_model=ObjectiveAlerts,
    responses=describe_responses(),
)
def alerts(request: Request, slo: ObjectiveId, at: At = None) -> Response:
    """Both burn rates of each window pair, its alert threshold and its state."""
    service = service_of(request)
    service.reporter.objective(slo)
    as_of = service.instant(at)

    def make() -> ResponseBody:
        entry = ObjectiveEntry.of(service.entry(slo, as_of))
        return ResponseBody.json(ObjectiveAlerts.model_validate(entry))

    return respond_cached(request, (as_of,), make, service.freshness(at, as_of), charged=True)


@objective_router.get(
    "/slo/{slo}/spec",
    summary="Definition of the objective",
    response_class=Response,
    responses=describe_responses(formats={YAML: {"type": "object"}}),
)
def spec(
    request: Request,
    slo: ObjectiveId,
    output_format: Annotated[
        SpecFormat, Query(alias="format", description="Output format.")
    ] = SpecFormat.NATIVE,
) -> Response:
    """YAML: the `slo:` section of mm2slo.yaml for this objective, or OpenSLO v1."""
    service = service_of(request)
    objective = service.reporter.objective(slo)

    def make() -> ResponseBody:
        # Imported on first use to keep the start fast.
        from mm2slo_core.objectives.objective_documents import render_openslo, render_slo_section

        renderers = {
            SpecFormat.NATIVE: render_slo_section,
            SpecFormat.OPENSLO: render_openslo,
        }
        return ResponseBody.text(renderers[output_format]((objective,)), YAML)

    return respond_cached(request, (output_format,), make, service.freshness(None, service.now))
