"""A report as one Slack message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from mm2slo_core.reporting.percent_text import signed_share
from mm2slo_report.digest.flow_sections import format_objective, group_by_flow
from mm2slo_report.digest.headline import format_status_counts, format_trend_counts, title
from mm2slo_report.digest.incident_costs import format_audits, format_incidents
from mm2slo_report.digest.slack_blocks import context, divider, fits, header, remarks, section
from mm2slo_report.digest.slack_markup import escape, format_code, truncate
from mm2slo_report.rendering.value_format import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.reporting.slo_report import Detail, Report
    from mm2slo_report.digest.flow_sections import FlowSection
    from mm2slo_report.digest.report_links import ReportLinks
    from mm2slo_report.digest.slack_blocks import Block

FLOWS: Final = 8
"""At most; the linked report has all of them."""
_TITLE: Final = 300
_REMARKS: Final = 5


@dataclass(frozen=True, slots=True)
class Message:
    """A Slack message; `text` is for notifications, screen readers and clients without blocks."""

    text: str
    blocks: tuple[Block, ...]


def build_message(report: Report, details: Sequence[Detail], links: ReportLinks) -> Message:
    """A message about *report* within Slack's limits, with the costliest incidents of *details*.

    Flows that do not fit are left out, the healthiest first; a line counts them by status.
    """
    parts = group_by_flow(report.entries)
    url = links.report_url(report)
    shown = min(FLOWS, len(parts))
    blocks = _blocks(report, details, parts, url, shown)
    while shown and not fits(blocks):
        shown -= 1
        blocks = _blocks(report, details, parts, url, shown)
    return Message(text=_fallback_text(report, url), blocks=tuple(blocks))


def _blocks(
    report: Report,
    details: Sequence[Detail],
    parts: Sequence[FlowSection],
    url: str | None,
    shown: int,
) -> list[Block]:
    zone = ZoneInfo(report.zone)
    found = [header(title(report))]
    summary = [
        line
        for line in (format_status_counts(report.entries), format_trend_counts(report.entries))
        if line
    ]
    if summary:
        found += [section(summary), divider()]
    found += [section(part.lines()) for part in parts[:shown]]
    if len(parts) > shown:
        found.append(section([_more(parts[shown:], url, some=shown > 0)]))
    costs, audits = format_incidents(details, zone), format_audits(parts)
    if costs:
        found.append(section(["*Costliest incidents*", *costs]))
    if audits:
        found.append(section(["*Record audits*", *audits]))
    notes = _remarks(report)
    if notes:
        found.append(remarks(notes))
    if url is not None:
        found.append(section([f"<{url}|Full report>"]))
    source = f"Source: {escape(report.source)}, as of {moment(report.as_of, zone)}."
    found.append(context(f"Bars show the remaining error budget. {source}"))
    return found


def _more(rest: Sequence[FlowSection], url: str | None, *, some: bool) -> str:
    count = f"{len(rest)} {'more ' if some else ''}flow{'' if len(rest) == 1 else 's'}"
    text = (
        f"{'and ' if some else ''}{count}: {format_status_counts(part.entries[0] for part in rest)}"
    )
    return text if url is None else f"{text} (<{url}|show all>)"


def _remarks(report: Report) -> list[str]:
    """What qualifies the figures: warnings of the source, errors, and missing history."""
    partial = sum(
        each.coverage.known_since is not None and each.coverage.known_since > each.window.start
        for each in report.entries
    )
    found = list(report.warnings)
    if partial:
        found.append(
            f"{partial} of {len(report.entries)} objectives have data for only part of the period"
        )
    found += dict.fromkeys(error for each in report.entries for error in each.errors)
    if len(found) > _REMARKS:
        found[_REMARKS - 1 :] = [f"and {len(found) - _REMARKS + 1} more; see the report"]
    return found


def _fallback_text(report: Report, url: str | None) -> str:
    text = truncate(title(report), _TITLE)
    if report.entries:
        worst = report.entries[0]
        text += (
            f". Worst: {format_code(worst.objective.flow.label)} {format_objective(worst)}, "
            f"budget {signed_share(worst.budget.remaining)}"
        )
    return text if url is None else f"{text}. <{url}|Full report>"
