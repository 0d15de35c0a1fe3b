"""A report as one Slack message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from mm2slo_core.reporting.words import signed_share
from mm2slo_report.digest.blocks import context, divider, fits, header, remarks, section
from mm2slo_report.digest.costs import audit_lines, cost_lines
from mm2slo_report.digest.flows import by_flow, objective_name
from mm2slo_report.digest.headline import statuses, title, trends
from mm2slo_report.digest.text import code, escaped, fitted
from mm2slo_report.rendering.figures import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.reporting.report import Detail, Report
    from mm2slo_report.digest.blocks import Block
    from mm2slo_report.digest.flows import FlowPart
    from mm2slo_report.digest.links import Links

FLOWS: Final = 8
"""At most: people read a message, and a report in full behind its link."""
_TITLE: Final = 300
_REMARKS: Final = 5


@dataclass(frozen=True, slots=True)
class Message:
    """What is posted; `text` is for notifications, screen readers and clients without blocks."""

    text: str
    blocks: tuple[Block, ...]


def digest(report: Report, details: Sequence[Detail], links: Links) -> Message:
    """*report* within Slack's limits, with what cost most from *details*.

    Flows that do not fit are left out, the best first; a line says how many, and how they stand.
    """
    parts = by_flow(report.entries)
    url = links.report(report)
    shown = min(FLOWS, len(parts))
    blocks = _blocks(report, details, parts, url, shown)
    while shown and not fits(blocks):
        shown -= 1
        blocks = _blocks(report, details, parts, url, shown)
    return Message(text=_text(report, url), blocks=tuple(blocks))


def _blocks(
    report: Report,
    details: Sequence[Detail],
    parts: Sequence[FlowPart],
    url: str | None,
    shown: int,
) -> list[Block]:
    zone = ZoneInfo(report.zone)
    found = [header(title(report))]
    summary = [line for line in (statuses(report.entries), trends(report.entries)) if line]
    if summary:
        found += [section(summary), divider()]
    found += [section(part.lines()) for part in parts[:shown]]
    if len(parts) > shown:
        found.append(section([_more(parts[shown:], url, some=shown > 0)]))
    costs, audits = cost_lines(details, zone), audit_lines(parts)
    if costs:
        found.append(section(["*What cost most*", *costs]))
    if audits:
        found.append(section(["*Audits of the records*", *audits]))
    told = _remarks(report)
    if told:
        found.append(remarks(told))
    if url is not None:
        found.append(section([f"<{url}|Full report>"]))
    counted = f"Counted by {escaped(report.source)}, as of {moment(report.as_of, zone)}."
    found.append(context(f"Bars show what is left of an error budget. {counted}"))
    return found


def _more(rest: Sequence[FlowPart], url: str | None, *, some: bool) -> str:
    count = f"{len(rest)} {'more ' if some else ''}flow{'' if len(rest) == 1 else 's'}"
    said = f"{'and ' if some else ''}{count}: {statuses(part.entries[0] for part in rest)}"
    return said if url is None else f"{said} (<{url}|all of them>)"


def _remarks(report: Report) -> list[str]:
    """What a reader must know of the figures: of the source, of what failed, of youth."""
    young = sum(
        each.coverage.known_since is not None and each.coverage.known_since > each.window.start
        for each in report.entries
    )
    found = list(report.warnings)
    if young:
        found.append(f"{young} of {len(report.entries)} objectives are younger than their period")
    found += dict.fromkeys(error for each in report.entries for error in each.errors)
    if len(found) > _REMARKS:
        found[_REMARKS - 1 :] = [f"and {len(found) - _REMARKS + 1} more; see the report"]
    return found


def _text(report: Report, url: str | None) -> str:
    words = fitted(title(report), _TITLE)
    if report.entries:
        worst = report.entries[0]
        words += (
            f". Worst: {code(worst.objective.flow.label)} {objective_name(worst)}, "
            f"budget {signed_share(worst.budget.remaining)}"
        )
    return words if url is None else f"{words}. <{url}|Full report>"
