"""What cost most of the budgets, and what audits say of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.exclusion import Span
from mm2slo_report.digest.figures import spent, stretch
from mm2slo_report.digest.flows import objective_name
from mm2slo_report.digest.text import code, escaped, fitted
from mm2slo_report.rendering.figures import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.entry import Confirmation, Entry, Incident
    from mm2slo_core.reporting.report import Detail
    from mm2slo_report.digest.flows import FlowPart

_SHOWN: Final = 3
_SENTENCE: Final = 300


class _Cost(NamedTuple):
    entry: Entry
    incident: Incident

    @property
    def span(self) -> Span:
        return Span(self.incident.start, self.incident.end)


def cost_lines(details: Iterable[Detail], zone: tzinfo) -> list[str]:
    """The costliest incidents, each once: one outage hurts several objectives of its flow."""
    every = sorted(
        (_Cost(detail.entry, each) for detail in details for each in detail.incidents),
        key=lambda each: (-each.incident.consumed, each.incident.start, each.entry.id),
    )
    chosen: list[_Cost] = []
    for each in every:
        if len(chosen) < _SHOWN and not any(_same(each, other) for other in chosen):
            chosen.append(each)
    return [_cost_line(*each, zone) for each in chosen]


def audit_lines(parts: Sequence[FlowPart]) -> list[str]:
    """What audits found, flows with faults first; then how many flows were audited at all."""
    audited = [(part, told) for part in parts if (told := part.entries[0].confirmation) is not None]
    audited.sort(key=lambda each: not each[1].faults)
    found = [f"• {code(part.flow.label)} {_said(told)}" for part, told in audited[:_SHOWN]]
    silent = len(parts) - len(audited)
    if len(audited) > _SHOWN:
        rest = audited[_SHOWN:]
        faulty = sum(bool(told.faults) for _, told in rest)
        found.append(f"and {_flows(len(rest))} more, {faulty or 'none'} with faults")
    if silent:
        found.append(f"{_flows(silent)} not audited in this time")
    return found


def _cost_line(entry: Entry, incident: Incident, zone: tzinfo) -> str:
    share = escaped(spent(incident.consumed))
    return (
        f"• {code(entry.objective.flow.label)} {stretch(incident.start, incident.end, zone)}: "
        f"{count(incident.bad)} bad, {share} of the budget of {objective_name(entry)}"
    )


def _said(told: Confirmation) -> str:
    sentence = fitted(told.sentence, _SENTENCE)
    return f"*{sentence}*" if told.faults and "*" not in sentence else sentence


def _same(one: _Cost, other: _Cost) -> bool:
    return one.entry.objective.flow == other.entry.objective.flow and one.span.overlaps(other.span)


def _flows(count: int) -> str:
    return f"{count} flow{'' if count == 1 else 's'}"
