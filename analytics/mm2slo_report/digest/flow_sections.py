"""A digest's section about one flow: its objectives with their error budgets, the worst first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.slo_status import Reason, Status
from mm2slo_core.reporting.percent_text import share, signed_share
from mm2slo_core.sli_counters import ALL
from mm2slo_report.digest.budget_bars import draw_bar, format_trend
from mm2slo_report.digest.headline import SIGNS, format_status_counts
from mm2slo_report.digest.slack_markup import escape, format_code
from mm2slo_report.rendering.report_sentences import stale_text, status_text
from mm2slo_report.rendering.value_format import length, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.topology import Flow

_SHOWN: Final = 4
_TIER: Final = 60
_FULL_COVERAGE: Final = 0.99
"""Coverage from which it is not mentioned."""


@dataclass(frozen=True, slots=True)
class FlowSection:
    """The entries of one flow, the worst first; at least one."""

    flow: Flow
    entries: tuple[Entry, ...]

    @property
    def status(self) -> Status:
        """The worst of its objectives' statuses."""
        return self.entries[0].status

    def lines(self) -> list[str]:
        """A title, a line for each of the worst objectives, and a count of the others."""
        name = format_code(self.flow.label)
        found = [f"{SIGNS[self.status]} {name} *{status_text(self.status)}*"]
        found += [_line(each) for each in self.entries[:_SHOWN]]
        rest = self.entries[_SHOWN:]
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
    tier = "" if key.tier == ALL else f" {format_code(key.tier, _TIER)}"
    return key.sli.value.replace("_", " ") + tier


def _line(entry: Entry) -> str:
    budget = entry.budget.remaining
    ratio = f"{share(entry.ratio)}, objective {percent_text(entry.objective.target)}"
    parts = [f"`{draw_bar(budget)}` {format_objective(entry)} {ratio}"]
    if budget is not None:
        before = entry.before
        compared = format_trend(budget, None if before is None else before.remaining)
        if before is not None and before.has_low_coverage:
            compared = f"was {signed_share(before.remaining)} at {share(before.coverage)} coverage"
        parts.append(f"budget {signed_share(budget)}" + (f" ({compared})" if compared else ""))
    parts += _remarks(entry)
    return "; ".join(parts)


def _remarks(entry: Entry) -> list[str]:
    """The reason, where the figures do not show it, time to exhaustion, and low coverage."""
    found = []
    if entry.status is not Status.MET and entry.reason is not Reason.EXHAUSTED:
        found.append(escape(entry.reason.value))
    if stale := stale_text(entry):
        found.append(stale)
    if entry.reason is Reason.BURNING and entry.exhaustion_seconds:
        found.append(f"exhausted in about {length(entry.exhaustion_seconds)} at this rate")
    cover = entry.coverage.window
    if entry.ratio is not None and cover is not None and cover < _FULL_COVERAGE:
        found.append(f"{share(cover)} coverage")
    return found
