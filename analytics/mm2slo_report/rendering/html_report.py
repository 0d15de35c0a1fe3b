"""Reports and the status page as self-contained HTML without scripts."""

from __future__ import annotations

import base64
import hashlib
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.audit.latency_histogram import percentile_name
from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.reporting.entry_order import count_by_status, worst_first
from mm2slo_core.reporting.incidents import costliest
from mm2slo_core.reporting.percent_text import share, signed_share
from mm2slo_report.rendering import (
    budget_steps,
    latency_chart,
    report_sentences,
    sli_descriptions,
    value_format,
)
from mm2slo_report.rendering.burn_down_chart import burn_down, used
from mm2slo_report.rendering.entry_models import NO_REFERENCES
from mm2slo_report.rendering.flow_map import MapFlow, flow_map
from mm2slo_report.rendering.page_views import FlowView
from mm2slo_report.rendering.term_definitions import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from jinja2 import Environment

    from mm2slo_core.reporting.incidents import Cost
    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.reporting.slo_report import Detail, Report
    from mm2slo_core.topology import Flow
    from mm2slo_report.rendering.page_views import AuditView, GroupView, LatencyView
    from mm2slo_report.rendering.references import References

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
    details: Sequence[Detail] = (),
    costs: Sequence[Cost] = (),
    *,
    references: References = NO_REFERENCES,
) -> str:
    """A report to read, print and pass on: *details* of some objectives, *costs* of all."""
    common = _common(report, details, references) | {"incidents": costs or costliest(details)}
    return _environment().get_template("report.html.j2").render(**common)


def page(
    report: Report,
    flows: Sequence[FlowView] = (),
    readiness: Sequence[GroupView] = (),
    audits: Sequence[AuditView] = (),
    *,
    latencies: Sequence[LatencyView] = (),
    details: Sequence[Detail] = (),
    references: References = NO_REFERENCES,
    problems: Sequence[str] = (),
) -> str:
    """The status page: flow map, objectives, spent budgets, failover readiness and audits.

    *problems* are errors of sections, one sentence each.
    """
    common = _common(report, details, references)
    if stopped := report_sentences.stopped([each.state for each in flows]):
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


def _common(report: Report, details: Sequence[Detail], references: References) -> dict[str, Any]:
    zone = value_format.zone_of(report.zone)
    return {
        "report": report,
        "zone": zone,
        "states": count_by_status(report.entries),
        "worst": worst_status(report.entries),
        "headline": report_sentences.verdict(report),
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

    def __init__(self, view: FlowView, own: Sequence[Entry]) -> None:
        self.view = view
        self.worst = worst_status(own)
        self.status = flow_display_status(view.state, self.worst)
        self.text = flow_text(view.state, self.worst)
        self.status_counts = count_by_status(own)
        self.number = len(own)

    def as_map_flow(self) -> MapFlow:
        return MapFlow(flow=self.view.flow, status=self.status, text=self.text)


def _flows(entries: Iterable[Entry], flows: Iterable[FlowView]) -> dict[str, Any]:
    own: dict[Flow, list[Entry]] = {}
    for each in entries:
        own.setdefault(each.objective.flow, []).append(each)
    views = {flow: FlowView(flow=flow) for flow in own} | {each.flow: each for each in flows}
    rows = [_FlowRow(view, own.get(flow, [])) for flow, view in views.items()]
    order = list(count_by_status(()))
    rows.sort(key=lambda each: (order.index(each.status), each.view.flow))
    return {"rows": rows, "map": flow_map([each.as_map_flow() for each in rows])}


def _readiness_order(group: GroupView) -> tuple[int, str, str]:
    rank = {False: 0, None: 1, True: 2}[group.ready]
    return rank, group.flow.label, group.group


def _chart(detail: Detail, zone: tzinfo) -> Any:
    window = detail.entry.window
    whole_end = max(window.end, window.start + round(window.seconds * 1000))
    return burn_down(detail.days, zone, whole_end=whole_end)


def _latency_chart(view: LatencyView, entries: Iterable[Entry]) -> Any:
    keys = [each.objective.key for each in entries if each.objective.flow == view.flow]
    found = [sli_descriptions.threshold(each) for each in keys]
    return latency_chart.latency_chart(view, [each for each in found if each is not None])


@cache
def _environment() -> Environment:
    """Escapes all values; a missing name is an error."""
    # Imported on first use to keep the start fast.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "share": share,
        "signed_share": signed_share,
        "count": value_format.count,
        "percent": value_format.percent_text,
        "burn": value_format.burn,
        "length_of": value_format.length,
        "length_up": partial(value_format.length, up=True),
        "px": "{:.1f}".format,
        "with_entry": lambda found, entry: [(entry, each) for each in found],
        "plain": value_format.plain,
        "utc": value_format.utc,
        "moment": value_format.moment,
        "end_text": budget_steps.end_text,
        "part_name": budget_steps.part_name,
        "used": used,
        "status_text": report_sentences.status_text,
        "indicator": sli_descriptions.name,
        "sli_description": sli_descriptions.sli_description,
        "budget_left": report_sentences.budget_left,
        "budget_time": report_sentences.budget_time,
        "exhaustion": report_sentences.exhaustion,
        "trend": report_sentences.trend,
        "reason_text": report_sentences.reason_text,
        "bounds_text": latency_chart.bounds_text,
        "percentile": percentile_name,
    }
    made.globals |= {
        "style": STYLE,
        "definitions": DEFINITIONS,
        "Status": Status,
        "period": report_sentences.period,
        "worst_first": worst_first,
    }
    return made
