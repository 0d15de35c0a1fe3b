"""Reports as Markdown (CommonMark with GitHub's tables)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.reporting.words import share
from mm2slo_report.rendering import indicators, lines
from mm2slo_report.rendering.burn_down import used
from mm2slo_report.rendering.definitions import DEFINITIONS
from mm2slo_report.rendering.figures import (
    burn,
    count,
    length,
    moment,
    percent_text,
    zone_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo

    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.reporting.report import Detail, Report

_MARKUP: Final = re.compile(r"([\\`*_\[\]<|~#&!$])")
_BREAKS: Final = re.compile(r"\s+")
_LINKS: Final = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp|www)(?=[:.])")
_MOST_INCIDENTS: Final = 5
_COLUMNS: Final = (
    "Status", "Flow", "Indicator", "Objective", "Measured", "Bad events", "Events",
    "Budget left", "Burn 1h", "Runs out", "Coverage", "Period before",
)  # fmt: skip


def as_markdown(report: Report, details: Sequence[Detail] = ()) -> str:
    """Headline, a table with the worst first, what cost most, flow by flow, and definitions."""
    zone = zone_of(report.zone)
    parts = [
        "# Service-level objectives",
        f"**{lines.verdict(report)}**",
        (
            f"{lines.counted_states(report)}. {escaped(lines.period(report, zone))}, "
            f"as of {moment(report.as_of, zone)}. Figures from {escaped(report.source)}."
        ),
        *(f"> {escaped(each)}" for each in report.warnings),
    ]
    if report.entries:
        parts += ["## Objectives, the worst first", _table(_COLUMNS, map(_row, report.entries))]
    costly = [each for each in details if each.incidents]
    if costly:
        parts += ["## What cost most", _incidents(costly, zone)]
    for label in sorted({each.objective.flow.label for each in report.entries}):
        own = [each for each in report.entries if each.objective.flow.label == label]
        parts += [f"## {escaped(label)}", *_flow(own)]
    parts.append("## Definitions")
    parts.append("\n".join(f"- **{term}**: {meaning}" for term, meaning in DEFINITIONS))
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """*text* as plain text of one line: no markup, no link, no cell of its own."""
    one_line = _BREAKS.sub(" ", text).strip()
    plain = _LINKS.sub(lambda found: f"{found[0]}\u200b", _MARKUP.sub(r"\\\1", one_line))
    # Nothing escapes a mention: where the report is posted, `@here` would call people.
    return plain.replace("@", "@\u200b")


def _row(entry: Entry) -> tuple[str, ...]:
    objective = entry.objective
    return (
        lines.status_word(entry.status),
        escaped(objective.flow.label),
        escaped(indicators.name(objective.key)),
        percent_text(objective.target),
        share(entry.ratio),
        count(entry.counts.bad),
        count(entry.counts.total),
        lines.budget_left(entry),
        burn(entry.burn_rates.get("1h")),
        lines.runs_out(entry),
        share(entry.coverage.window),
        lines.trend(entry),
    )


def _incidents(details: Iterable[Detail], zone: tzinfo) -> str:
    found = sorted(
        ((each, detail.entry) for detail in details for each in detail.incidents[:_MOST_INCIDENTS]),
        key=lambda pair: (-pair[0].consumed, pair[0].start),
    )
    rows = (
        (
            escaped(entry.objective.flow.label),
            escaped(indicators.name(entry.objective.key)),
            moment(each.start, zone),
            length((each.end - each.start) / 1000),
            count(each.bad),
            used(each.consumed),
        )
        for each, entry in found
    )
    return _table(("Flow", "Indicator", "Begin", "Length", "Bad events", "Of the budget"), rows)


def _flow(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        points = [
            (
                f"**{escaped(indicators.name(entry.objective.key))}**: "
                f"{lines.status_word(entry.status)}, {lines.why(entry)}"
            ),
            (
                f"{count(entry.counts.good)} good, {count(entry.counts.bad)} bad, "
                f"{count(entry.counts.unknown)} unknown, {count(entry.excluded.total)} excluded"
            ),
        ]
        if entry.objective.owner:
            points.append(f"owner {escaped(entry.objective.owner)}")
        if entry.confirmation is not None:
            points.append(escaped(entry.confirmation.sentence))
        points += [escaped(each) for each in (*entry.warnings, *entry.errors)]
        yield f"- {'; '.join(dict.fromkeys(points))}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    found = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in found)
