"""`/slo`: every objective, the worst first, by pages."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import WithJsonSchema

from mm2slo_core.objectives.status import Status
from mm2slo_core.reporting.order import by_status
from mm2slo_core.sli import Sli
from mm2slo_report.rendering.document import report_document
from mm2slo_report.web import paging, parameters
from mm2slo_report.web.answers import Body
from mm2slo_report.web.describing import LIST, described
from mm2slo_report.web.objective import At  # noqa: TC001 - FastAPI reads it
from mm2slo_report.web.problems import refused
from mm2slo_report.web.service import respond_kept, service_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.reporting.report import Report
    from mm2slo_core.topology import Flow

router = APIRouter(tags=["objectives"])

LIMIT: Final = 100
LARGEST_LIMIT: Final = 1_000


class Sort(StrEnum):
    """The order of a list. Entries without the figure come last."""

    WORST = "worst"
    """By status, then by what is left of the budget."""
    BUDGET_REMAINING = "budget_remaining"
    """The least first."""
    BURN_RATE = "burn_rate"
    """Of the last hour; the fastest first."""
    COVERAGE = "coverage"
    """The least first."""
    ID = "id"


@router.get("/slo", summary="All objectives, the worst first", responses=described(LIST))
def slos(  # noqa: PLR0917 - FastAPI passes them by name
    request: Request,
    flow: Annotated[list[str], Query(description="Labels or slugs of flows, as `us->eu`.")] = [],  # noqa: B006 - FastAPI copies it
    sli: Annotated[
        list[Annotated[str, WithJsonSchema(parameters.listed(Sli))]],
        Query(description="Types of indicators."),
    ] = [],  # noqa: B006
    status: Annotated[
        list[Annotated[str, WithJsonSchema(parameters.listed(Status))]],
        Query(description="How they stand."),
    ] = [],  # noqa: B006
    sort: Annotated[Sort, Query(description="The order.")] = Sort.WORST,
    limit: Annotated[int, Query(ge=1, le=LARGEST_LIMIT, description="Entries of a page.")] = LIMIT,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    at: At = None,
) -> Response:
    """Each entry has the figures of its own objective's window, all at one instant (`as_of`).

    An objective whose figures cannot be read is listed as `no_data` and says why in `errors`.
    """
    service = service_of(request)
    flows = parameters.flows("flow", flow, service.flows)
    slis = parameters.words("sli", sli, Sli)
    statuses = parameters.words("status", status, Status)
    question = {
        "flow": [each.label for each in flows], "sli": slis, "status": statuses, "sort": sort,
        "at": at,
    }  # fmt: skip
    start = None if cursor is None else paging.read(cursor, question)
    as_of = service.instant(at) if start is None else start.as_of
    if as_of > service.now:
        raise refused("cursor", "this cursor is of an instant that has not come")

    def make() -> Body:
        report = service.report(as_of)
        found = sorted(_chosen(report, flows, slis, statuses), key=_KEYS[sort])
        first = 0 if start is None else _place(found, start.after)
        page = tuple(found[first : first + limit])
        further = len(found) > first + limit
        following = paging.Cursor(page[-1].id, as_of) if further else None
        return Body.of(
            {
                **report_document(replace(report, entries=page), service.settings.references),
                "headline": headline(found),
                "total": len(found),
                "next": None if following is None else paging.written(following, question),
            }
        )

    key = (str(question), limit, cursor, as_of)
    # A cursor names an instant as well, and anybody can write one.
    past = as_of != service.instant(None)
    return respond_kept(request, key, make, service.freshness(at or cursor, as_of), charged=past)


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


def headline(entries: Collection[Entry]) -> dict[str, Any]:
    """How many objectives stand how."""
    counts = {status.value: number for status, number in by_status(entries).items()}
    return {"objectives": len(entries), **counts}


def _place(entries: list[Entry], after: str) -> int:
    for place, each in enumerate(entries, 1):
        if each.id == after:
            return place
    raise refused("cursor", "the list has changed since the page before: start without a cursor")


def _least(value: float | None) -> tuple[bool, float]:
    return (value is None, value or 0.0)


_KEYS: Final[dict[Sort, Callable[[Entry], Any]]] = {
    # As the report has them; sorting is stable.
    Sort.WORST: lambda _: 0,
    Sort.BUDGET_REMAINING: lambda each: (*_least(each.budget.remaining), each.id),
    Sort.BURN_RATE: lambda each: (
        *_least(None if (rate := each.burn_rates.get("1h")) is None else -rate),
        each.id,
    ),
    Sort.COVERAGE: lambda each: (*_least(each.coverage.window), each.id),
    Sort.ID: lambda each: each.id,
}
