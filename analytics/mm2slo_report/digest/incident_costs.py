"""Lines of a digest about the costliest incidents and about audit results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.exclusion import Span
from mm2slo_report.digest.budget_bars import format_interval, format_spent
from mm2slo_report.digest.flow_sections import format_objective
from mm2slo_report.digest.slack_markup import escape, format_code, truncate
from mm2slo_report.rendering.value_format import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.report_entry import Confirmation, Entry, Incident
    from mm2slo_core.reporting.slo_report import Detail
    from mm2slo_report.digest.flow_sections import FlowSection

_SHOWN: Final = 3
_SENTENCE: Final = 300


class _Cost(NamedTuple):
    entry: Entry
    incident: Incident

    @property
    def span(self) -> Span:
        return Span(self.incident.start, self.incident.end)


def format_incidents(details: Iterable[Detail], zone: tzinfo) -> list[str]:
    """The costliest incidents; of overlapping ones of a flow, only the costliest."""
    costs = sorted(
        (_Cost(detail.entry, each) for detail in details for each in detail.incidents),
        key=lambda each: (-each.incident.consumed, each.incident.start, each.entry.id),
    )
    chosen: list[_Cost] = []
    for each in costs:
        if len(chosen) < _SHOWN and not any(_is_same_outage(each, other) for other in chosen):
            chosen.append(each)
    return [_format_incident(*each, zone) for each in chosen]


def format_audits(parts: Sequence[FlowSection]) -> list[str]:
    """Audit results, flows with faults first, then the number of flows without an audit."""
    audited = [
        (part, result) for part in parts if (result := part.entries[0].confirmation) is not None
    ]
    audited.sort(key=lambda each: not each[1].faults)
    found = [
        f"• {format_code(part.flow.label)} {_format_audit(result)}"
        for part, result in audited[:_SHOWN]
    ]
    unaudited = len(parts) - len(audited)
    if len(audited) > _SHOWN:
        rest = audited[_SHOWN:]
        faulty = sum(bool(result.faults) for _, result in rest)
        found.append(f"and {_flows(len(rest))} more, {faulty or 'none'} with faults")
    if unaudited:
        found.append(f"{_flows(unaudited)} not audited in this period")
    return found


def _format_incident(entry: Entry, incident: Incident, zone: tzinfo) -> str:
    share = escape(format_spent(incident.consumed))
    interval = format_interval(incident.start, incident.end, zone)
    return (
        f"• {format_code(entry.objective.flow.label)} {interval}: "
        f"{count(incident.bad)} bad, {share} of the error budget of {format_objective(entry)}"
    )


def _format_audit(result: Confirmation) -> str:
    sentence = truncate(result.sentence, _SENTENCE)
    return f"*{sentence}*" if result.faults and "*" not in sentence else sentence


def _is_same_outage(one: _Cost, other: _Cost) -> bool:
    same_flow = one.entry.objective.flow == other.entry.objective.flow
    return same_flow and one.span.overlaps(other.span)


def _flows(count: int) -> str:
    return f"{count} flow{'' if count == 1 else 's'}"
