"""`/slo/{id}`: one objective, how it went, its pairs of windows, and the objective itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.figures import shorthand
from mm2slo_core.reporting.history import whole_minute
from mm2slo_core.reporting.periods import ACCEPTED
from mm2slo_report.rendering.document import detail_document, entry_document
from mm2slo_report.rendering.figures import finite, utc, whole
from mm2slo_report.web import parameters
from mm2slo_report.web.answers import YAML, Body
from mm2slo_report.web.describing import ALERTS, HISTORY, ONE, SPEC, described
from mm2slo_report.web.problems import refused
from mm2slo_report.web.service import respond_kept, service_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.reporting.report import History

router = APIRouter(tags=["objectives"])

_LONGEST_HISTORY_MS: Final = 100 * 86_400_000

Id = Annotated[str, Path(description="Its id, as `us-to-eu-availability`.", max_length=200)]
At = Annotated[
    str | None,
    Query(
        description="An instant in the past (RFC 3339); else now.",
        json_schema_extra=parameters.INSTANT,
    ),
]
Period = Annotated[
    str | None,
    Query(
        description=f"As {ACCEPTED}; else the objective's own window.",
        json_schema_extra=parameters.PERIOD,
    ),
]


@router.get("/slo/{slo}", summary="One objective, and what cost most", responses=described(ONE))
def one(request: Request, slo: Id, at: At = None, period: Period = None) -> Response:
    """The entry as in the list, with what each day and each incident took of the budget.

    Where less than two days are known, `days` holds shorter steps. An incident is a run of minutes
    with bad events, with gaps of up to 5 minutes.
    """
    service = service_of(request)
    service.reporter.objective(slo)
    as_of = service.instant(at)
    service.check_period(period, as_of)

    def make() -> Body:
        detail = service.detail(slo, as_of, period)
        return Body.of(detail_document(detail, service.settings.references))

    return respond_kept(request, (as_of, period), make, service.freshness(at, as_of), charged=True)


@router.get("/slo/{slo}/history", summary="How it went", responses=described(HISTORY))
def history(
    request: Request,
    slo: Id,
    start: Annotated[
        str | None,
        Query(
            alias="from",
            description="Its start (RFC 3339).",
            json_schema_extra=parameters.INSTANT,
        ),
    ] = None,
    end: Annotated[
        str | None,
        Query(alias="to", description="Its end; else now.", json_schema_extra=parameters.INSTANT),
    ] = None,
    step: Annotated[
        str | None,
        Query(
            description="`5m`, `1h`, `1d`: up to 2,000 steps.", json_schema_extra=parameters.STEP
        ),
    ] = None,
) -> Response:
    """Counts by steps of time, without planned maintenance; the objective's window by default.

    `remaining` is of the budget of the whole time that is asked for, after the step.
    """
    service = service_of(request)
    objective = service.reporter.objective(slo)
    now, as_of = service.now, service.instant(None)
    until = as_of
    if end is not None:
        until = min(as_of, whole_minute(parameters.instant("to", end, now)))
    since = until - round(objective.window * 1000)
    if start is not None:
        since = whole_minute(parameters.instant("from", start, now))
    if not 0 <= since < until:
        raise refused("from", f"the time from {utc(max(since, 0))} to {utc(until)} holds no minute")
    if until - since > _LONGEST_HISTORY_MS:
        raise refused("from", "the time is longer than 100d: ask for parts of it")
    span = Span(since, until)
    length = None if step is None else parameters.step("step", step)

    def make() -> Body:
        try:
            found = service.history(slo, span, as_of, length)
        except ValueError as error:
            raise refused("step", f"step {step!r}: {error}", "5m", "1h", "1d") from None
        return Body.of(history_document(slo, found))

    return respond_kept(
        request, (since, until, as_of, length), make, service.freshness(end, until), charged=True
    )


@router.get("/slo/{slo}/alerts", summary="Its pairs of burn windows", responses=described(ALERTS))
def alerts(request: Request, slo: Id, at: At = None) -> Response:
    """Both burn rates of each pair, the factor above which they alert, and where it stands."""
    service = service_of(request)
    service.reporter.objective(slo)
    as_of = service.instant(at)

    def make() -> Body:
        entry, _ = service.entry(slo, as_of, None)
        return Body.of(alerts_document(entry_document(entry, service.settings.references)))

    return respond_kept(request, (as_of,), make, service.freshness(at, as_of), charged=True)


@router.get("/slo/{slo}/spec", summary="The objective itself", responses=described(SPEC, YAML))
def spec(request: Request, slo: Id) -> Response:
    """The `slo:` section of mm2slo.yaml for this objective, as YAML."""
    service = service_of(request)
    objective = service.reporter.objective(slo)

    def make() -> Body:
        # Read when it is first asked for: the start need not wait for it.
        from mm2slo_core.config import native

        return Body.text(native.write((objective,)), YAML)

    return respond_kept(request, (), make, service.freshness(None, service.now))


def alerts_document(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Of an entry's document what tells whether it alerts."""
    shown = ("id", "as_of", "status", "status_reason", "status_pair", "burn_rate", "errors")
    return {**{name: entry[name] for name in shown}, "pairs": entry["alerts"]}


def history_document(slo: str, found: History) -> dict[str, Any]:
    """How an objective went, by steps."""
    return {
        "id": slo,
        "as_of": utc(found.as_of),
        "start": utc(found.start),
        "end": utc(found.end),
        "step": shorthand(found.length / 1000),
        "objective": found.objective.target,
        "points": [
            {
                "start": utc(each.start),
                "end": utc(each.end),
                "good": whole(each.counts.good),
                "bad": whole(each.counts.bad),
                "total": whole(each.counts.total),
                "unknown": whole(each.counts.unknown),
                "samples": each.counts.minutes,
                "sli_value": finite(each.ratio),
                "burn_rate": finite(each.burn_rate),
                "remaining": finite(each.remaining),
            }
            for each in found.steps
        ],
    }
