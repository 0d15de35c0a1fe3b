"""A report as one Slack message, and the same message as plain text for a terminal (pure).

A headline, a section for each flow, incidents and audits become blocks within Slack's limits.
Slack reads `&`, `<` and `>` in every text, and `*`, `_`, `~` and the backtick in its markup, for
which it has no escape: foreign names are written as code, in which only a backtick has a meaning.
Bars and shares of budgets are rounded so that they never look better than they are.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import accumulate
from math import floor
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from mm2slo_core.indicators.sli_counters import ALL
from mm2slo_core.objectives.error_budget import Reason, Status
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.quantity_text import share_text, signed_share_text, spent_share_text
from mm2slo_core.reporting.report_entry import (
    Confirmation,
    Entry,
    Incident,
    WindowKind,
    count_by_status,
    headline,
)
from mm2slo_core.reporting.slo_report import Cost, EntryDetail, Report
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.report_text import (
    count_text,
    duration_text,
    moment_text,
    percent_text,
    stale_text,
    status_text,
)
from mm2slo_report.service_settings import ReportLinks

MAX_FLOWS: Final = 8
"""At most; the linked report has all of them."""
_MAX_TITLE: Final = 300
_MAX_REMARKS: Final = 5


@dataclass(frozen=True, slots=True)
class Message:
    """A Slack message; `text` is for notifications, screen readers and clients without blocks."""

    text: str
    blocks: tuple[Block, ...]


def build_message(report: Report, details: Sequence[EntryDetail], links: ReportLinks) -> Message:
    """A message about *report* within Slack's limits, with the costliest incidents of *details*.

    Flows that do not fit are left out, the healthiest first; a line counts them by status.
    """
    parts = group_by_flow(report.entries)
    url = links.report_url(report)
    shown = min(MAX_FLOWS, len(parts))
    blocks = _blocks(report, details, parts, url, shown)
    while shown and not fits_slack(blocks):
        shown -= 1
        blocks = _blocks(report, details, parts, url, shown)
    return Message(text=_fallback_text(report, url), blocks=tuple(blocks))


def _blocks(
    report: Report,
    details: Sequence[EntryDetail],
    parts: Sequence[FlowSection],
    url: str | None,
    shown: int,
) -> list[Block]:
    zone = ZoneInfo(report.zone)
    title = truncate(title_text(report), _MAX_HEADER)
    found: list[Block] = [{"type": "header", "text": _plain(title)}]
    counts = (format_status_counts(report.entries), format_trend_counts(report.entries))
    if summary := [line for line in counts if line]:
        found += [section_block(summary), {"type": "divider"}]
    found += [section_block(part.lines()) for part in parts[:shown]]
    if len(parts) > shown:
        found.append(section_block([_hidden_flows_text(parts[shown:], url, some=shown > 0)]))
    costs, audits = format_incidents(details, zone), format_audits(parts)
    if costs:
        found.append(section_block(["*Costliest incidents*", *costs]))
    if audits:
        found.append(section_block(["*Record audits*", *audits]))
    notes = _report_remarks(report)
    if notes:
        found.append(remarks_block(notes))
    if url is not None:
        found.append(section_block([f"<{url}|Full report>"]))
    source = f"Source: {escape(report.source)}, as of {moment_text(report.as_of, zone)}."
    legend = f"Bars show the remaining error budget. {source}"
    found.append({"type": "context", "elements": [_markup(legend)]})
    return found


def _hidden_flows_text(rest: Sequence[FlowSection], url: str | None, *, some: bool) -> str:
    count = f"{len(rest)} {'more ' if some else ''}flow{'' if len(rest) == 1 else 's'}"
    text = (
        f"{'and ' if some else ''}{count}: {format_status_counts(part.entries[0] for part in rest)}"
    )
    return text if url is None else f"{text} (<{url}|show all>)"


def _report_remarks(report: Report) -> list[str]:
    """What qualifies the figures: warnings of the source, errors, and missing history."""
    partial = sum(
        each.coverage.known_since is not None
        # An objective whose data starts after the period has none of it.
        and each.window.start < each.coverage.known_since < each.window.end
        for each in report.entries
    )
    found = list(report.warnings)
    if partial:
        found.append(
            f"{partial} of {len(report.entries)} objectives have data for only part of the period"
        )
    found += dict.fromkeys(error for each in report.entries for error in each.errors)
    if len(found) > _MAX_REMARKS:
        found[_MAX_REMARKS - 1 :] = [f"and {len(found) - _MAX_REMARKS + 1} more; see the report"]
    return found


def _fallback_text(report: Report, url: str | None) -> str:
    text = truncate(title_text(report), _MAX_TITLE)
    if report.entries:
        worst = report.entries[0]
        text += (
            f". Worst: {format_code(worst.objective.flow.label)} {format_objective(worst)}, "
            f"budget {signed_share_text(worst.budget.remaining)}"
        )
    return text if url is None else f"{text}. <{url}|Full report>"


SIGNS: Final = {
    Status.BREACHED: ":red_circle:",
    Status.AT_RISK: ":large_orange_circle:",
    Status.NO_DATA: ":grey_question:",
    Status.MET: ":large_green_circle:",
    Status.IDLE: ":white_circle:",
}


def title_text(report: Report) -> str:
    """`Replication SLOs, 7d to 2026-07-20 09:00 CEST: 11 of 14 met, 2 breached, 1 no data`."""
    return f"Replication SLOs, {_period_text(report)}: {_format_met(report.entries)}"


def format_status_counts(entries: Iterable[Entry]) -> str:
    """Counts by status with emoji, without zeros."""
    return "   ".join(
        f"{SIGNS[status]} {count} {status_text(status)}"
        for status, count in count_by_status(entries).items()
        if count
    )


def format_trend_counts(entries: Sequence[Entry]) -> str:
    """How many objectives have more or less budget remaining than in the previous period.

    Empty if none is comparable.
    """
    found = Counter(_direction(each) for each in entries)
    if found[_NO_COMPARISON] == len(entries):
        return ""
    parts = [f"{found[each]} {each}" for each in _DIRECTIONS if found[each]]
    return f"Compared with the previous period: {', '.join(parts)}"


_NO_COMPARISON: Final = "not comparable"
_DIRECTIONS: Final = ("better", "worse", "unchanged", _NO_COMPARISON)


def _direction(entry: Entry) -> str:
    if entry.before is None or entry.before.has_low_coverage:
        return _NO_COMPARISON
    text = format_trend(entry.budget.remaining, entry.before.remaining)
    if not text or entry.budget.remaining is None:
        return _NO_COMPARISON
    return {"▲": "better", "▼": "worse"}.get(text[0], "unchanged")


def _format_met(entries: Sequence[Entry]) -> str:
    if not entries:
        return "no objectives"
    found = headline(entries)
    met = found[Status.MET]
    text = f"all {met} met" if met == len(entries) else f"{met} of {len(entries)} met"
    for status in (Status.BREACHED, Status.AT_RISK, Status.NO_DATA, Status.IDLE):
        text += f", {found[status]} {status_text(status)}" if found[status] else ""
    text += f", {found['stale']} stale" if found["stale"] else ""
    if any(each.confirmation is not None and each.confirmation.faults for each in entries):
        text += ", and audits found faults"
    return text


def _period_text(report: Report) -> str:
    as_of = moment_text(report.as_of, ZoneInfo(report.zone))
    window = report.window
    if window is None:
        return f"to {as_of}"
    if window.kind is WindowKind.ROLLING:
        return f"{window.name} to {as_of}"
    running = window.end - window.start < round(window.seconds * 1000)
    return f"{window.name} so far, to {as_of}" if running else window.name


_OBJECTIVES_OF_FLOW: Final = 4
_MAX_TIER: Final = 60

_FULL_COVERAGE: Final = 0.99
"""Coverage from which it is not mentioned."""


@dataclass(frozen=True, slots=True)
class FlowSection:
    """The entries of one flow, the worst first; at least one."""

    flow: Flow
    entries: tuple[Entry, ...]

    def lines(self) -> list[str]:
        """A title, a line for each of the worst objectives, and a count of the others."""
        name, worst = format_code(self.flow.label), self.entries[0].status
        found = [f"{SIGNS[worst]} {name} *{status_text(worst)}*"]
        found += [_objective_line(each) for each in self.entries[:_OBJECTIVES_OF_FLOW]]
        rest = self.entries[_OBJECTIVES_OF_FLOW:]
        if rest:
            found.append(f"and {len(rest)} more: {format_status_counts(rest)}")
        return found


def group_by_flow(entries: Iterable[Entry]) -> tuple[FlowSection, ...]:
    """*entries*, the worst first, grouped by flow in the same order."""
    found: dict[Flow, list[Entry]] = {}
    for each in entries:
        found.setdefault(each.objective.flow, []).append(each)
    return tuple(FlowSection(flow, tuple(each)) for flow, each in found.items())


def format_objective(entry: Entry) -> str:
    """The SLI and its tier in markup, such as ``latency `10s` ``."""
    key = entry.objective.key
    tier = "" if key.tier == ALL else f" {format_code(key.tier, _MAX_TIER)}"
    return key.sli.value.replace("_", " ") + tier


def _objective_line(entry: Entry) -> str:
    budget = entry.budget.remaining
    ratio = f"{share_text(entry.ratio)}, objective {percent_text(entry.objective.target)}"
    parts = [f"`{draw_bar(budget)}` {format_objective(entry)} {ratio}"]
    if budget is not None:
        before = entry.before
        compared = format_trend(budget, None if before is None else before.remaining)
        if before is not None and before.has_low_coverage:
            remaining, coverage = signed_share_text(before.remaining), share_text(before.coverage)
            compared = f"was {remaining} at {coverage} coverage"
        parts.append(f"budget {signed_share_text(budget)}" + (f" ({compared})" if compared else ""))
    parts += _objective_remarks(entry)
    return "; ".join(parts)


def _objective_remarks(entry: Entry) -> list[str]:
    """The reason, where the figures do not show it, time to exhaustion, and low coverage."""
    found = []
    if entry.status is not Status.MET and entry.reason is not Reason.EXHAUSTED:
        found.append(escape(entry.reason.value))
    if stale := stale_text(entry):
        found.append(stale)
    if entry.reason is Reason.BURNING and entry.exhaustion_seconds:
        found.append(f"exhausted in about {duration_text(entry.exhaustion_seconds)} at this rate")
    cover = entry.coverage.window
    if entry.ratio is not None and cover is not None and cover < _FULL_COVERAGE:
        found.append(f"{share_text(cover)} coverage")
    return found


_MAX_ROWS: Final = 3
_MAX_SENTENCE: Final = 300


def format_incidents(details: Iterable[EntryDetail], zone: tzinfo) -> list[str]:
    """The costliest incidents; of overlapping ones of a flow, only the costliest."""
    costs = sorted(
        (Cost(detail.entry, each) for detail in details for each in detail.incidents),
        key=lambda each: (-each.incident.consumed, each.incident.start, each.entry.id),
    )
    chosen: list[Cost] = []
    for each in costs:
        if len(chosen) < _MAX_ROWS and not any(_is_same_outage(each, other) for other in chosen):
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
        for part, result in audited[:_MAX_ROWS]
    ]
    unaudited = len(parts) - len(audited)
    if len(audited) > _MAX_ROWS:
        rest = audited[_MAX_ROWS:]
        faulty = sum(bool(result.faults) for _, result in rest)
        found.append(f"and {_flow_count_text(len(rest))} more, {faulty or 'none'} with faults")
    if unaudited:
        found.append(f"{_flow_count_text(unaudited)} not audited in this period")
    return found


def _format_incident(entry: Entry, incident: Incident, zone: tzinfo) -> str:
    share = spent_share_text(incident.consumed)
    interval = format_interval(incident.start, incident.end, zone)
    return (
        f"• {format_code(entry.objective.flow.label)} {interval}: "
        f"{count_text(incident.bad)} bad, {share} of the error budget of {format_objective(entry)}"
    )


def _format_audit(result: Confirmation) -> str:
    sentence = truncate(result.sentence, _MAX_SENTENCE)
    return f"*{sentence}*" if result.faults and "*" not in sentence else sentence


def _is_same_outage(one: Cost, other: Cost) -> bool:
    first, second = (Span(each.incident.start, each.incident.end) for each in (one, other))
    return one.entry.objective.flow == other.entry.objective.flow and first.overlaps(second)


def _flow_count_text(count: int) -> str:
    return f"{count} flow{'' if count == 1 else 's'}"


_CELLS: Final = 10
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_EMPTY_CELL: Final = "░"
_UNKNOWN_CELL: Final = "·"


def draw_bar(remaining: float | None) -> str:
    """A remaining error budget in 10 cells, rounded down: full only for an unspent budget.

    Dots if it is unknown, all cells empty if it is exhausted.
    """
    if remaining is None:
        return _UNKNOWN_CELL * _CELLS
    eighths = floor(min(max(remaining, 0.0), 1.0) * _CELLS * 8)
    if remaining > 0:
        eighths = max(eighths, 1)
    full, part = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[part] if part else "")
    return drawn.ljust(_CELLS, _EMPTY_CELL)


def format_trend(now: float | None, before: float | None) -> str:
    """Compare a remaining budget with that of the previous period; empty if that is unknown."""
    if before is None:
        return ""
    was = signed_share_text(before)
    if now is None:
        return f"was {was}"
    if signed_share_text(now) == was:
        return "unchanged"
    return f"{'▲' if now > before else '▼'} was {was}"


def format_interval(start: int, end: int, zone: tzinfo) -> str:
    """`2026-07-14 10:02 to 10:31 CEST (29 min)`."""
    first, last = (datetime.fromtimestamp(at / 1000, zone) for at in (start, end))
    same = first.date() == last.date() and first.utcoffset() == last.utcoffset()
    closing = f"{last:%H:%M %Z}" if same else moment_text(end, zone)
    opening = f"{first:%Y-%m-%d %H:%M}" if same else moment_text(start, zone)
    return f"{opening} to {closing} ({duration_text((end - start) / 1000)})"


Block: TypeAlias = Mapping[str, Any]
MAX_BLOCKS: Final = 50

MAX_JSON: Final = 12_000
"""Of all blocks as JSON. Slack refuses about 13,000 (`msg_blocks_too_long`) and states no limit."""
_MAX_HEADER: Final = 150
_MAX_SECTION: Final = 3_000
_MAX_ELEMENTS: Final = 10
_MAX_REMARK: Final = 300

_MORE: Final = 40
"""Room for the line that counts the omitted ones."""


def section_block(lines: Sequence[str]) -> Block:
    """Lines of markup. Lines that do not fit are left out; a last line counts them."""
    kept: list[str] = []
    used = 0
    for line in lines:
        used += slack_length(line) + 1
        if used > _MAX_SECTION - _MORE:
            kept.append(f"… and {len(lines) - len(kept)} more")
            break
        kept.append(line)
    return {"type": "section", "text": _markup("\n".join(kept))}


def remarks_block(texts: Sequence[str]) -> Block:
    """At most 10 plain texts, escaped and cut to 300 characters here; the last counts the rest."""
    kept = [truncate(each, _MAX_REMARK) for each in texts[:_MAX_ELEMENTS]]
    if len(texts) > _MAX_ELEMENTS:
        kept[-1] = f"… and {len(texts) - _MAX_ELEMENTS + 1} more"
    return {"type": "context", "elements": [_plain(each) for each in kept]}


def fits_slack(blocks: Sequence[Block]) -> bool:
    """Whether one message can hold *blocks*."""
    if len(blocks) > MAX_BLOCKS:
        return False
    return slack_length(json.dumps(blocks, ensure_ascii=False)) <= MAX_JSON


def _plain(text: str) -> Block:
    # Without emoji, a name such as us:eu:ap keeps its colons.
    return {"type": "plain_text", "text": text, "emoji": False}


def _markup(text: str) -> Block:
    # Verbatim: addresses and channel names in it become no links.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


MAX_NAME: Final = 120
"""Maximum length of an escaped name, as Slack counts it."""

_MAX_READ: Final = 5_000
"""Characters that are read of a text; more than any message may hold."""
_CUT: Final = "…"

_BACKTICK: Final = "\N{MODIFIER LETTER GRAVE ACCENT}"
"""Looks like a backtick, but does not end code."""

_REPLACED: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control and format characters (including bidirectional marks), surrogates, line separators."""


def slack_length(text: str) -> int:
    """The length in UTF-16 code units, as Slack counts: an emoji is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def escape(text: str) -> str:
    """Escape what Slack would read as a link or a mention."""
    return html.escape(text, quote=False)


def unescape(text: str) -> str:
    """*text* as Slack displays it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def truncate(text: str, longest: int) -> str:
    """*text* on one line, escaped and cut to *longest*; `?` if it is empty, which Slack refuses."""
    # Escaped characters are cut as a whole: a part of `&amp;` would be shown.
    pieces = [escape(character) for character in _cleaned(text) or "?"]
    ends = list(accumulate(map(slack_length, pieces)))
    if ends[-1] <= longest:
        return "".join(pieces)
    return "".join(pieces[: bisect_right(ends, longest - 1)]).rstrip() + _CUT


def format_code(name: str, longest: int = MAX_NAME) -> str:
    """*name* as code."""
    return f"`{truncate(name.replace('`', _BACKTICK), longest)}`"


def _cleaned(text: str) -> str:
    shown = (
        " " if unicodedata.category(character) in _REPLACED else character
        for character in text[:_MAX_READ]
    )
    return " ".join("".join(shown).split())


TERMINAL_WIDTH: Final = 80
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_LINK: Final = re.compile(r"<(?P<url>https?://[^|>]+)\|(?P<label>[^>]+)>")
_BOLD: Final = re.compile(r"\*([^*]+)\*")
_MARKS: Final = dict(zip(SIGNS.values(), ("!!", "!", "?", "ok", "-"), strict=True))


def format_for_terminal(message: Message) -> str:
    """*message* in lines of at most 80 characters; only URLs may be longer."""
    return "\n".join(line for block in message.blocks for line in _block_lines(block))


def _block_lines(block: Block) -> Iterator[str]:
    if block["type"] == "divider":
        yield "-" * TERMINAL_WIDTH
        return
    texts = [block["text"]] if "text" in block else block["elements"]
    for text in texts:
        shown = text["text"]
        if text["type"] == "mrkdwn":
            shown = _without_markup(shown)
        for line in unescape(shown).split("\n"):
            yield from _wrapped(line)
    if block["type"] != "context":
        yield ""


def _without_markup(text: str) -> str:
    """Emoji become marks, links show their URLs, code loses its backticks."""
    # Text in code is never markup.
    outside = re.split(r"`([^`]*)`", text)
    for at in range(0, len(outside), 2):
        piece = _LINK.sub(r"\g<label>: \g<url>", _BOLD.sub(r"\1", outside[at]))
        for sign, mark in _MARKS.items():
            piece = piece.replace(sign, mark)
        outside[at] = piece
    return "".join(outside)


def _wrapped(line: str) -> list[str]:
    # Keep a number and its percent sign on one line.
    text = line.replace(" %", _NO_BREAK + "%")
    found = textwrap.wrap(
        text,
        TERMINAL_WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words="://" not in line,
    )
    return [each.replace(_NO_BREAK, " ") for each in found]
