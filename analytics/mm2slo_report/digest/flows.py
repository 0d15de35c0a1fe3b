"""One flow in a digest: its objectives with their budgets, the worst first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.status import Reason, Status
from mm2slo_core.reporting.words import share, signed_share
from mm2slo_core.sli import ALL
from mm2slo_report.digest.figures import bar, trend
from mm2slo_report.digest.headline import SIGNS, statuses
from mm2slo_report.digest.text import code, escaped
from mm2slo_report.rendering.figures import length, percent_text
from mm2slo_report.rendering.lines import status_word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.topology import Flow

_SHOWN: Final = 4
_TIER: Final = 60
_MOST: Final = 0.99
"""Of coverage; above it, nothing worth a word is missing."""


@dataclass(frozen=True, slots=True)
class FlowPart:
    """The entries of one flow, the worst first; there is one at least."""

    flow: Flow
    entries: tuple[Entry, ...]

    @property
    def status(self) -> Status:
        """That of the worst."""
        return self.entries[0].status

    def lines(self) -> list[str]:
        """A title, a line for each of the worst objectives, and how many are left out."""
        name = code(self.flow.label)
        found = [f"{SIGNS[self.status]} {name} *{status_word(self.status)}*"]
        found += [_line(each) for each in self.entries[:_SHOWN]]
        rest = self.entries[_SHOWN:]
        if rest:
            found.append(f"and {len(rest)} more: {statuses(rest)}")
        return found


def by_flow(entries: Iterable[Entry]) -> tuple[FlowPart, ...]:
    """*entries*, the worst first, by their flows in the same order."""
    found: dict[Flow, list[Entry]] = {}
    for each in entries:
        found.setdefault(each.objective.flow, []).append(each)
    return tuple(FlowPart(flow, tuple(each)) for flow, each in found.items())


def objective_name(entry: Entry) -> str:
    """`latency` and its threshold, in markup."""
    key = entry.objective.key
    tier = "" if key.tier == ALL else f" {code(key.tier, _TIER)}"
    return key.sli.value.replace("_", " ") + tier


def _line(entry: Entry) -> str:
    budget = entry.budget.remaining
    kept = f"{share(entry.ratio)}, promised {percent_text(entry.objective.target)}"
    words = [f"`{bar(budget)}` {objective_name(entry)} {kept}"]
    if budget is not None:
        before = entry.before
        compared = trend(budget, None if before is None else before.remaining)
        if before is not None and before.badly_known:
            compared = f"was {signed_share(before.remaining)}, {share(before.coverage)} of it known"
        words.append(f"budget {signed_share(budget)}" + (f" ({compared})" if compared else ""))
    words += _remarks(entry)
    return "; ".join(words)


def _remarks(entry: Entry) -> list[str]:
    """Why it stands so, where the figures do not say it, and what is not known."""
    found = []
    if entry.status is not Status.OK and entry.reason is not Reason.USED_UP:
        found.append(escaped(entry.reason.value))
    if entry.reason is Reason.BURNING and entry.exhaustion_seconds:
        found.append(f"used up in {length(entry.exhaustion_seconds)} at the pace of the last hour")
    cover = entry.coverage.window
    if entry.ratio is not None and cover is not None and cover < _MOST:
        found.append(f"{share(cover)} known")
    return found
