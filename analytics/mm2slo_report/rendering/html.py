"""Reports and the page as HTML: one file without scripts or anything from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.audit.latency_histogram import percentile_name
from mm2slo_core.objectives.status import Status
from mm2slo_core.reporting.order import by_status, worst_first
from mm2slo_core.reporting.words import share, signed_share
from mm2slo_report.rendering import figures, indicators, latency_chart, lines, pace
from mm2slo_report.rendering.burn_down import burn_down, used
from mm2slo_report.rendering.definitions import DEFINITIONS
from mm2slo_report.rendering.document import NO_REFERENCES
from mm2slo_report.rendering.flow_map import MapFlow, flow_map
from mm2slo_report.rendering.tones import flow_tone, flow_words, worst_status
from mm2slo_report.rendering.views import FlowView

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from jinja2 import Environment

    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.reporting.report import Detail, Report
    from mm2slo_core.topology import Flow
    from mm2slo_report.rendering.references import References
    from mm2slo_report.rendering.views import AuditView, GroupView, LatencyView

_HERE: Final = "mm2slo_report.rendering"
STYLE: Final = (files(_HERE) / "templates" / "style.css").read_text("utf-8")
_DIGEST: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""All that the pages need: their one style sheet, inline, and an empty icon."""


def as_html(
    report: Report,
    details: Sequence[Detail] = (),
    *,
    references: References = NO_REFERENCES,
) -> str:
    """A report to be read, printed and passed on; *details* tell what cost most."""
    return (
        _environment().get_template("report.html.j2").render(**_common(report, details, references))
    )


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
    """The page at `/`: flows as a map, objectives, what cost most, failover and audits.

    *problems* are what could not be read for a section, in one sentence each.
    """
    common = _common(report, details, references)
    if stopped := lines.stopped([each.state for each in flows]):
        # Events of now come into the counts a minute later.
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
    zone = figures.zone_of(report.zone)
    return {
        "report": report,
        "zone": zone,
        "states": by_status(report.entries),
        "worst": worst_status(report.entries),
        "headline": lines.verdict(report),
        "shared": _shared(report.entries),
        "details": [(each, _chart(each, zone)) for each in details],
        "incidents": _costliest(details),
        "references": references,
        "detailed": {each.entry.id for each in details},
    }


def _shared(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Warnings that all of several entries have: told once, not in every row.

    What audits found is told beside the figures that it is about.
    """
    if len(entries) < 2:
        return ()
    audited = {each.confirmation.sentence for each in entries if each.confirmation}
    return tuple(
        warning
        for warning in entries[0].warnings
        if warning not in audited and all(warning in each.warnings for each in entries)
    )


class _FlowRow:
    """A flow of the map with its worst promise."""

    def __init__(self, view: FlowView, own: Sequence[Entry]) -> None:
        self.view = view
        self.worst = worst_status(own)
        self.tone = flow_tone(view.state, self.worst)
        self.words = flow_words(view.state, self.worst)
        self.states = by_status(own)
        self.number = len(own)

    def as_map_flow(self) -> MapFlow:
        return MapFlow(flow=self.view.flow, tone=self.tone, words=self.words)


def _flows(entries: Iterable[Entry], flows: Iterable[FlowView]) -> dict[str, Any]:
    own: dict[Flow, list[Entry]] = {}
    for each in entries:
        own.setdefault(each.objective.flow, []).append(each)
    views = {flow: FlowView(flow=flow) for flow in own} | {each.flow: each for each in flows}
    rows = [_FlowRow(view, own.get(flow, [])) for flow, view in views.items()]
    order = list(by_status(()))
    rows.sort(key=lambda each: (order.index(each.tone), each.view.flow))
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
    found = [indicators.threshold(each) for each in keys]
    return latency_chart.latency_chart(view, [each for each in found if each is not None])


def _costliest(details: Iterable[Detail]) -> list[tuple[Any, Entry]]:
    found = [(each, detail.entry) for detail in details for each in detail.incidents]
    return sorted(found, key=lambda pair: (-pair[0].consumed, pair[0].start))[:_MOST_INCIDENTS]


_MOST_INCIDENTS: Final = 10


@cache
def _environment() -> Environment:
    """Everything that is put into a template is escaped, and a missing name is an error."""
    # Read when a page is first asked for: a service that starts need not wait for it.
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
        "count": figures.count,
        "percent": figures.percent_text,
        "burn": figures.burn,
        "length_of": figures.length,
        "length_up": partial(figures.length, up=True),
        "px": "{:.1f}".format,
        "with_entry": lambda found, entry: [(each, entry) for each in found],
        "plain": figures.plain,
        "utc": figures.utc,
        "moment": figures.moment,
        "ending": pace.ending,
        "part_name": pace.part_name,
        "used": used,
        "word": lines.status_word,
        "indicator": indicators.name,
        "wording": indicators.wording,
        "budget_left": lines.budget_left,
        "budget_time": lines.budget_time,
        "runs_out": lines.runs_out,
        "trend": lines.trend,
        "why": lines.why,
        "bracket": latency_chart.bracket,
        "percentile": percentile_name,
    }
    made.globals |= {
        "style": STYLE,
        "definitions": DEFINITIONS,
        "Status": Status,
        "period": lines.period,
        "worst_first": worst_first,
    }
    return made
