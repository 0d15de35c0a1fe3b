"""Reports and the status page as self-contained HTML without scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.audit.unit_outcome import percentile_name
from mm2slo_core.objectives.error_budget import Status
from mm2slo_core.quantity_text import share_text, signed_share_text, spent_share_text
from mm2slo_core.reporting.report_entry import Entry, count_by_status, utc_text, worst_first
from mm2slo_core.reporting.slo_report import Cost, EntryDetail, Report, costliest
from mm2slo_core.reporting.step_counts import STEP_MS
from mm2slo_core.topology import Flow
from mm2slo_report.rendering import report_charts, report_text
from mm2slo_report.rendering.page_views import AuditView, FlowStatusView, GroupView, LatencyView
from mm2slo_report.rendering.report_charts import MapFlow, burn_down, flow_map
from mm2slo_report.rendering.report_models import NO_REFERENCES
from mm2slo_report.rendering.report_text import DEFINITIONS
from mm2slo_report.service_settings import References

if TYPE_CHECKING:
    from jinja2 import Environment


_HERE: Final = "mm2slo_report.rendering"
_OF_FLOW_STATES: Final = {"stopped": Status.BREACHED, "unknown": Status.NO_DATA}
STYLE: Final = (files(_HERE) / "templates" / "style.css").read_text("utf-8")
_DIGEST: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Allows only the inline style sheet and the empty icon."""


def as_html(
    report: Report,
    details: Sequence[EntryDetail] = (),
    costs: Sequence[Cost] = (),
    *,
    references: References = NO_REFERENCES,
) -> str:
    """A report to read, print and pass on: *details* of some objectives, *costs* of all."""
    common = _common(report, details, references) | {"incidents": costs or costliest(details)}
    return _environment().get_template("report.html.j2").render(**common)


def status_page_html(
    report: Report,
    flows: Sequence[FlowStatusView] = (),
    readiness: Sequence[GroupView] = (),
    audits: Sequence[AuditView] = (),
    *,
    latencies: Sequence[LatencyView] = (),
    details: Sequence[EntryDetail] = (),
    references: References = NO_REFERENCES,
    problems: Sequence[str] = (),
) -> str:
    """The status page: flow map, objectives, spent budgets, failover readiness and audits.

    *problems* are errors of sections, one sentence each.
    """
    common = _common(report, details, references)
    if stopped := report_text.stopped_flows_text([each.state for each in flows]):
        # Event counts show a stopped flow only a minute later.
        common |= {"headline": f"{stopped}. {common['headline']}", "worst": Status.BREACHED}
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            **common,
            flows=_flows(report.entries, flows),
            groups=sorted(readiness, key=_readiness_order),
            audits=audits,
            latencies=[(each, _latency_chart(each, report.entries)) for each in latencies],
            problems=problems,
        )
    )


def _common(
    report: Report, details: Sequence[EntryDetail], references: References
) -> dict[str, Any]:
    zone = report_text.zone_of(report.zone)
    return {
        "report": report,
        "zone": zone,
        "states": count_by_status(report.entries),
        "worst": worst_status(report.entries),
        "headline": report_text.verdict_text(report),
        "shared": _shared(report.entries),
        "details": [(each, _chart(each, zone)) for each in details],
        "incidents": costliest(details),
        "references": references,
        "detailed": {each.entry.id for each in details},
    }


def _shared(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Warnings common to all entries, shown once instead of in every row.

    Audit results stay in their rows.
    """
    if len(entries) < 2:
        return ()
    audited = {each.confirmation.sentence for each in entries if each.confirmation}
    return tuple(
        warning
        for warning in entries[0].warnings
        if warning not in audited and all(warning in each.warnings for each in entries)
    )


def worst_status(entries: Iterable[Entry]) -> Status | None:
    """The worst status of *entries*; None without any."""
    ordered = worst_first(entries)
    return ordered[0].status if ordered else None


def flow_display_status(state: str | None, worst: Status | None) -> Status:
    """A stopped flow shows as breached, an unknown one as no data."""
    own = _OF_FLOW_STATES.get(state or "")
    if own is Status.BREACHED or worst is None:
        return own or (Status.NO_DATA if state is None else Status.MET)
    if own is Status.NO_DATA and worst in {Status.MET, Status.IDLE}:
        return own
    return worst


def flow_text(state: str | None, worst: Status | None) -> str:
    """`running`, `running, breached`: the flow state, and the status of its objectives."""
    status = None if worst is None else worst.value.replace("_", " ")
    if state is None:
        return status or "unknown"
    return state if worst in {None, Status.MET, Status.IDLE} else f"{state}, {status}"


class _FlowRow:
    """A flow of the map with its worst objective."""

    def __init__(self, view: FlowStatusView, own: Sequence[Entry]) -> None:
        self.view = view
        self.worst = worst_status(own)
        self.status = flow_display_status(view.state, self.worst)
        self.text = flow_text(view.state, self.worst)
        self.status_counts = count_by_status(own)
        self.number = len(own)

    def as_map_flow(self) -> MapFlow:
        return MapFlow(flow=self.view.flow, status=self.status, text=self.text)


def _flows(entries: Iterable[Entry], flows: Iterable[FlowStatusView]) -> dict[str, Any]:
    own: dict[Flow, list[Entry]] = {}
    for each in entries:
        own.setdefault(each.objective.flow, []).append(each)
    views = {flow: FlowStatusView(flow=flow) for flow in own} | {each.flow: each for each in flows}
    rows = [_FlowRow(view, own.get(flow, [])) for flow, view in views.items()]
    order = list(count_by_status(()))
    rows.sort(key=lambda each: (order.index(each.status), each.view.flow))
    return {"rows": rows, "map": flow_map([each.as_map_flow() for each in rows])}


def _readiness_order(group: GroupView) -> tuple[int, str, str]:
    rank = {False: 0, None: 1, True: 2}[group.ready]
    return rank, group.flow.label, group.group


def _chart(detail: EntryDetail, zone: tzinfo) -> Any:
    return burn_down(detail.days, zone, whole_end=detail.entry.window.whole.end)


def _latency_chart(view: LatencyView, entries: Iterable[Entry]) -> Any:
    keys = [each.objective.key for each in entries if each.objective.flow == view.flow]
    found = [report_text.sli_threshold(each) for each in keys]
    return report_charts.latency_chart(view, [each for each in found if each is not None])


@cache
def _environment() -> Environment:
    """Escapes all values; a missing name is an error."""
    # Imported on first use to keep the start fast.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Jinja2 escapes nothing by default, and names of topics and groups come from anyone who may
    # create them.
    made = Environment(
        loader=PackageLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "share": share_text,
        "signed_share": signed_share_text,
        "spent_share": spent_share_text,
        "count": report_text.count_text,
        "percent": report_text.percent_text,
        "burn": report_text.burn_rate_text,
        "length_of": report_text.duration_text,
        "length_up": partial(report_text.duration_text, up=True),
        "px": "{:.1f}".format,
        "with_entry": lambda found, entry: [(entry, each) for each in found],
        "plain": report_text.every_digit,
        "utc": utc_text,
        "moment": report_text.moment_text,
        "end_text": report_charts.end_text,
        "status_text": report_text.status_text,
        "indicator": report_text.sli_name,
        "sli_description": report_text.sli_description,
        "budget_left": report_text.budget_left,
        "budget_time": report_text.budget_time,
        "exhaustion": report_text.exhaustion_text,
        "trend": report_text.trend_text,
        "reason_text": report_text.reason_text,
        "bounds_text": report_charts.bounds_text,
        "percentile": percentile_name,
    }
    made.globals |= {
        "style": STYLE,
        "definitions": DEFINITIONS,
        "Status": Status,
        "period": report_text.period_text,
        "step_ms": STEP_MS,
        "worst_first": worst_first,
    }
    return made
