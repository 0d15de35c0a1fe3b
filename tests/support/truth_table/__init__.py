"""docs/truth-table.md, and its words for what an exporter counted."""

from __future__ import annotations

import time
from dataclasses import dataclass
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
"""StateTimeouts and deadlines of seconds, where the document's setting has tens of them."""
_SETTLED = DEADLINE + 2.5
"""After so long all that was under way when a fault started has been settled."""
_STRETCH = 6.0
"""Longer than a slice, so that one ends in it."""
_ON_THEIR_WAY = 4
_SEEN = 2
RECORDS = 20
"""Of a topic, before its flow is said to work."""


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


def words(before: Scrape, after: Scrape, flow: str = FLOW) -> dict[str, str]:
    """The three indicators of the document between two scrapes."""
    return {
        "Availability": word(*(s.sli(flow, "availability") for s in (before, after))),
        "Completeness": word(*(s.sli(flow, "completeness") for s in (before, after))),
        "Data freshness": word(*(s.sli(flow, "data_freshness", CLASS) for s in (before, after))),
    }


def states(seen: Watch) -> dict[str, str]:
    """State and reason by flow, as `state (reason)`."""
    return {each.flow.label: f"{each.state} ({each.reason})" for each in seen.exporter.overview()}


@dataclass(frozen=True)
class Stretch:
    """A stretch of a fault in which nothing changes any more, and what was counted in it."""

    flow: str
    start: Scrape
    end: Scrape
    seconds: float
    states: frozenset[str]

    @property
    def cells(self) -> dict[str, str]:
        """As `documented`, from what was seen."""
        return {
            "State": " ".join(sorted(self.states)),
            **words(self.start, self.end, self.flow),
        }

    def counted(self, sli: str, tier: str = "all") -> tuple[float, float, float]:
        """Good, total and unknown events of the stretch."""
        before, after = (s.sli(self.flow, sli, tier) for s in (self.start, self.end))
        good, total, unknown = (new - old for new, old in zip(after, before, strict=True))
        return good, total, unknown

    def grown(self, name: str, **labels: str) -> float:
        """By how much the sum of a metric's series grew."""
        return total(self.end, name, **labels) - total(self.start, name, **labels)


def stretches(seen: Watch, faults: Mapping[str, str]) -> dict[str, Stretch]:
    """Wait until the fault of each flow, which has started, shows as documented; then watch on."""
    expected = {flow: documented(fault)["State"] for flow, fault in faults.items()}
    fault_at = time.time()
    start = seen.until(
        lambda _: time.time() > fault_at + _SETTLED and states(seen) == expected,
        f"the states {expected}",
    )
    started = time.time()
    met: dict[str, set[str]] = {flow: set() for flow in faults}

    def over(_scrape: Scrape) -> bool:
        for flow, state in states(seen).items():
            met[flow].add(state)
        return time.time() > started + _STRETCH

    end = seen.until(over, "a stretch")
    seconds = time.time() - started
    return {flow: Stretch(flow, start, end, seconds, frozenset(met[flow])) for flow in faults}


def stretch_of(seen: Watch, fault: str) -> Stretch:
    """The same of the one flow that is watched."""
    return stretches(seen, {FLOW: fault})[FLOW]


def works(scrape: Scrape, topic: str, flow: str = FLOW) -> bool:
    """Whether the records, the canaries and the slices of a flow were seen to arrive."""
    return (
        scrape.sli(flow, "availability")[0] >= _SEEN
        and none_left_behind(scrape, flow)
        and total(scrape, "mm2_replicated_source_offset", flow=flow, topic=topic) >= RECORDS
        and scrape.sli(flow, "data_freshness", CLASS)[0] >= _SEEN
    )


def none_left_behind(scrape: Scrape, flow: str = FLOW) -> bool:
    """Whether no canary of the start waits for its deadline, to be settled in a test's stretch.

    While a flow comes up some may find no topic; of one that works, few are on their way.
    """
    return (scrape.value("mm2_canary_pending", flow=flow) or 0) <= _ON_THEIR_WAY


def total(scrape: Scrape, name: str, **labels: str) -> float:
    """The sum of a metric's series that have (at least) *labels*."""
    return sum(scrape.values(name, **labels).values())
