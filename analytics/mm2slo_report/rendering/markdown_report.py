"""Reports as Markdown (CommonMark with GitHub's tables)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.reporting.percent_text import share
from mm2slo_report.rendering import report_sentences, sli_descriptions
from mm2slo_report.rendering.burn_down_chart import used
from mm2slo_report.rendering.term_definitions import DEFINITIONS
from mm2slo_report.rendering.value_format import (
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

    from mm2slo_core.reporting.incidents import Cost
    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.reporting.slo_report import Report

_MARKUP: Final = re.compile(r"([\\`*_\[\]<|~#&!$])")
_BREAKS: Final = re.compile(r"\s+")
_LINKS: Final = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp|www)(?=[:.])")
_COLUMNS: Final = (
    "Status", "Flow", "SLI", "Objective", "Measured", "Bad events", "Events",
    "Remaining budget", "Burn rate (1h)", "Exhausted", "Coverage", "Previous period",
)  # fmt: skip


def as_markdown(report: Report, costs: Sequence[Cost] = ()) -> str:
    """Summary, table of objectives (worst first), incidents, flows and definitions."""
    zone = zone_of(report.zone)
    parts = [
        "# Service level objectives",
        f"**{report_sentences.verdict(report)}**",
        (
            f"{report_sentences.status_counts(report)}. "
            f"{escaped(report_sentences.period(report, zone))}, "
            f"as of {moment(report.as_of, zone)}. Figures from {escaped(report.source)}."
        ),
        *(f"> {escaped(each)}" for each in report.warnings),
    ]
    if report.entries:
        parts += ["## Objectives, worst first", _table(_COLUMNS, map(_row, report.entries))]
    if costs:
        parts += ["## Costliest incidents", _incidents(costs, zone)]
    for label in sorted({each.objective.flow.label for each in report.entries}):
        own = [each for each in report.entries if each.objective.flow.label == label]
        parts += [f"## {escaped(label)}", *_flow(own)]
    parts.append("## Definitions")
    parts.append("\n".join(f"- **{term}**: {meaning}" for term, meaning in DEFINITIONS))
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """*text* on one line, with markup, links and cell separators escaped."""
    one_line = _BREAKS.sub(" ", text).strip()
    plain = _LINKS.sub(lambda found: f"{found[0]}\u200b", _MARKUP.sub(r"\\\1", one_line))
    # Mentions such as @here have no escape: a zero-width space keeps them from notifying.
    return plain.replace("@", "@\u200b")


def _row(entry: Entry) -> tuple[str, ...]:
    objective = entry.objective
    return (
        report_sentences.status_text(entry.status),
        escaped(objective.flow.label),
        escaped(sli_descriptions.name(objective.key)),
        percent_text(objective.target),
        share(entry.ratio),
        count(entry.counts.bad),
        count(entry.counts.total),
        report_sentences.budget_left(entry),
        burn(entry.burn_rates.get("1h")),
        report_sentences.exhaustion(entry),
        share(entry.coverage.window),
        report_sentences.trend(entry),
    )


def _incidents(costs: Iterable[Cost], zone: tzinfo) -> str:
    rows = (
        (
            escaped(entry.objective.flow.label),
            escaped(sli_descriptions.name(entry.objective.key)),
            moment(each.start, zone),
            length((each.end - each.start) / 1000),
            count(each.bad),
            used(each.consumed),
            f"{each.equivalent_minutes:.3g}",
        )
        for entry, each in costs
    )
    columns = ("Flow", "SLI", "Start", "Duration", "Bad events", "Budget spent", "Outage minutes")
    return _table(columns, rows)


def _flow(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        points = [
            (
                f"**{escaped(sli_descriptions.name(entry.objective.key))}**: "
                f"{report_sentences.status_text(entry.status)}, "
                f"{report_sentences.reason_text(entry)}"
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
