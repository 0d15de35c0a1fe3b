"""`/slo`: all objectives, worst first, paginated."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import WithJsonSchema

from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.reporting.entry_order import headline
from mm2slo_core.sli_counters import Sli
from mm2slo_report.rendering.report_models import ObjectivePage
from mm2slo_report.web import page_cursor, query_parameters
from mm2slo_report.web.http_responses import Body
from mm2slo_report.web.objective_routes import At, Period  # noqa: TC001 - FastAPI reads them
from mm2slo_report.web.problem_details import invalid_parameter
from mm2slo_report.web.report_service import respond_cached, service_of
from mm2slo_report.web.response_docs import describe_responses

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.reporting.slo_report import Report
    from mm2slo_core.topology import Flow

router = APIRouter(tags=["objectives"])

LIMIT: Final = 100
MAX_LIMIT: Final = 1_000


class Sort(StrEnum):
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


@router.get(
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
        list[Annotated[str, WithJsonSchema(query_parameters.enum_schema(Sli))]],
        Query(description="SLI types."),
    ] = [],  # noqa: B006
    status: Annotated[
        list[Annotated[str, WithJsonSchema(query_parameters.enum_schema(Status))]],
        Query(description="Only these statuses."),
    ] = [],  # noqa: B006
    sort: Annotated[Sort, Query(description="Sort order.")] = Sort.WORST,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Page size.")] = LIMIT,
    cursor: Annotated[str | None, Query(description="`next` of the previous page.")] = None,
    at: At = None,
    period: Period = None,
) -> Response:
    """Figures over *period* or each objective's own window, as of one instant (`as_of`).

    An objective whose SLI cannot be read has the status `no_data` and the reason in `errors`.
    """
    service = service_of(request)
    flows = query_parameters.parse_flows("flow", flow, service.flows)
    slis = query_parameters.parse_enum("sli", sli, Sli)
    statuses = query_parameters.parse_enum("status", status, Status)
    query = {
        "flow": [each.label for each in flows], "sli": slis, "status": statuses, "sort": sort,
        "at": at, "period": period,
    }  # fmt: skip
    start = None if cursor is None else page_cursor.decode_cursor(cursor, query)
    as_of = service.instant(at) if start is None else start.as_of
    if as_of > service.now:
        raise invalid_parameter("cursor", "invalid cursor; its instant is in the future")
    service.check_period(period, as_of)

    def make() -> Body:
        report = service.report(as_of, period)
        found = sorted(_chosen(report, flows, slis, statuses), key=_SORT_KEYS[sort])
        first = 0 if start is None else _place(found, start.after)
        page = tuple(found[first : first + limit])
        further = len(found) > first + limit
        following = page_cursor.Cursor(page[-1].id, as_of) if further else None
        return Body.json(
            ObjectivePage.of(
                replace(report, entries=page),
                service.settings.references,
                headline=headline(found),
                total=len(found),
                next=None if following is None else page_cursor.encode_cursor(following, query),
            )
        )

    key = (str(query), limit, cursor, as_of)
    # A cursor holds an instant too, and clients can forge one.
    costly = period is not None or as_of != service.instant(None)
    return respond_cached(
        request, key, make, service.freshness(at or cursor, as_of), charged=costly
    )


def _chosen(
    report: Report, flows: Collection[Flow], slis: Collection[Sli], statuses: Collection[Status]
) -> list[Entry]:
    return [
        each
        for each in report.entries
        if (not flows or each.objective.flow in flows)
        and (not slis or each.objective.key.sli in slis)
        and (not statuses or each.status in statuses)
    ]


def _place(entries: list[Entry], after: str) -> int:
    for place, each in enumerate(entries, 1):
        if each.id == after:
            return place
    raise invalid_parameter(
        "cursor", "the list has changed since the previous page; start again without a cursor"
    )


def _ascending(value: float | None) -> tuple[bool, float]:
    return (value is None, value or 0.0)


_SORT_KEYS: Final[dict[Sort, Callable[[Entry], Any]]] = {
    # Already the order of the report; sorting is stable.
    Sort.WORST: lambda _: 0,
    Sort.BUDGET_REMAINING: lambda each: (*_ascending(each.budget.remaining), each.id),
    Sort.BURN_RATE: lambda each: (
        *_ascending(None if (rate := each.burn_rates.get("1h")) is None else -rate),
        each.id,
    ),
    Sort.COVERAGE: lambda each: (*_ascending(each.coverage.window), each.id),
    Sort.ID: lambda each: each.id,
}
