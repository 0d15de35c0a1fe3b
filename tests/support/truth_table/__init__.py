"""docs/truth-table.md, and its words for what an exporter counted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from watching import Scrape, Watch

TABLE = Path(__file__).parents[3] / "docs" / "truth-table.md"
FLOW = "us->eu"
CLASS = "orders"
DEADLINE = 3.0
FLOW_SETTINGS: Mapping[str, Any] = {
    "stall_after": "3s",
    # A round that a busy machine delays by three seconds skips no slice.
    "slice": "4s",
    "freshness": [{"name": CLASS, "topics": [".*"], "threshold": "2s"}],
    "canary": {"deadline": f"{DEADLINE:.0f}s", "latency_tiers": ["2s", "3s"], "interval": "500ms"},
}
"""Patience and deadlines of seconds, where the document's setting has tens of them."""
_SETTLED = DEADLINE + 2.5
"""After so long all that was under way when a fault began has been settled."""
_STRETCH = 6.0
"""Longer than a slice, so that one ends in it."""
_ON_THEIR_WAY = 4


def documented(fault: str) -> dict[str, str]:
    """The cells of the document that can be scraped, by column."""
    lines = TABLE.read_text().split("\n\n| Fault")[1].split("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    [row] = [cells for cells in rows if cells[0] == fault]
    cells = dict(zip(head, row[1:], strict=True))
    return {column: cell for column, cell in cells.items() if column != "Alerts"}


def word(before: tuple[float, float, float], after: tuple[float, float, float]) -> str:
    """What was counted between two scrapes, in a word of the document."""
    good, total, unknown = (new - old for new, old in zip(after, before, strict=True))
    settled = "partly" if 0 < good < total else "good" if good else "bad" if total else ""
    return " ".join(filter(None, (settled, "unknown" if unknown else ""))) or "-"


def words(before: Scrape, after: Scrape) -> dict[str, str]:
    """The three indicators of the document between two scrapes."""
    return {
        "Availability": word(*(s.sli(FLOW, "availability") for s in (before, after))),
        "Completeness": word(*(s.sli(FLOW, "completeness") for s in (before, after))),
        "Data freshness": word(*(s.sli(FLOW, "data_freshness", CLASS) for s in (before, after))),
    }


def state(seen: Watch) -> str:
    """State and reason, as `state (reason)`."""
    [flow] = seen.exporter.overview()
    return f"{flow.state} ({flow.reason})"


class Stretch:
    """A stretch of a fault in which nothing changes any more, and what was counted in it."""

    def __init__(self, seen: Watch, fault: str) -> None:
        """Wait until *fault*, which has begun, shows as documented; then watch for a while."""
        self.expected = documented(fault)
        began = time.time()
        self.begin = seen.until(
            lambda _: time.time() > began + _SETTLED and state(seen) == self.expected["State"],
            f"the state {self.expected['State']}",
        )
        begun = time.time()
        self.states: set[str] = set()

        def over(_scrape: Scrape) -> bool:
            self.states.add(state(seen))
            return time.time() > begun + _STRETCH

        self.end = seen.until(over, "a stretch")
        self.seconds = time.time() - begun

    @property
    def cells(self) -> dict[str, str]:
        """As `documented`, from what was seen."""
        return {"State": " ".join(sorted(self.states)), **words(self.begin, self.end)}

    def counted(self, sli: str, tier: str = "all") -> tuple[float, float, float]:
        """Good, total and unknown events of the stretch."""
        before, after = self.begin.sli(FLOW, sli, tier), self.end.sli(FLOW, sli, tier)
        good, total, unknown = (new - old for new, old in zip(after, before, strict=True))
        return good, total, unknown

    def grown(self, name: str, **labels: str) -> float:
        """By how much the sum of a metric's series grew."""
        return total(self.end, name, **labels) - total(self.begin, name, **labels)


def none_left_behind(scrape: Scrape) -> bool:
    """Whether no canary of the start waits for its deadline, to be settled in a test's stretch.

    While a flow comes up some may find no topic; of one that works, few are on their way.
    """
    return (scrape.value("mm2_canary_pending", flow=FLOW) or 0) <= _ON_THEIR_WAY


def total(scrape: Scrape, name: str, **labels: str) -> float:
    """The sum of a metric's series that have (at least) *labels*."""
    return sum(scrape.values(name, **labels).values())
