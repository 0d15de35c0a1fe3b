"""The cells of docs/truth-table.md, documented and as observed from an exporter."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
from exporter_watch import Scrape, Watch, counters_never_decreased, watch
from steady_load import SteadyLoad

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.running_lab import Lab

US_EU, EU_US = Flow("us", "eu"), Flow("eu", "us")
_BUSY: Final[Mapping[Flow, bool]] = MappingProxyType({US_EU: True})
_PARTITIONS = (0, 1)


@contextmanager
def start_exporter(
    lab: Lab,
    topic: str,
    busy: Mapping[Flow, bool] = _BUSY,
    *,
    canary: Mapping[str, str] | None = None,
) -> Iterator[Watch]:
    """Start an exporter of flows that replicate *topic*; if *busy*, each partition gets 10/s.

    At the end no counter may have decreased.
    """
    flow = {**FLOW_SETTINGS, "topics": [topic]}
    flow["canary"] = {**FLOW_SETTINGS["canary"], **(canary or {})}
    if flow["canary"].get("carrier") == "topic":
        flow["topics"].append(r"mm2slo\.canary")
    with ExitStack() as open_ones:
        for each, has_load in busy.items():
            source = lab.cluster(each.source)
            source.admin.create_topic(topic, len(_PARTITIONS))
            produce(source.librdkafka(), topic, Load(RECORDS))
            if has_load:
                open_ones.enter_context(SteadyLoad(source.librdkafka(), topic, _PARTITIONS))
        exporter = watch(lab, tuple(busy), flow=flow, exporter={"instance": topic})
        seen = open_ones.enter_context(exporter)
        yield seen
        assert counters_never_decreased(seen.scrapes) == []


def wait_until_working(seen: Watch, topic: str, busy: Mapping[Flow, bool] = _BUSY) -> None:
    """Wait until *topic* is replicated and canaries arrive, on each flow."""
    seen.until_ready()
    seen.until(lambda s: all(is_working(s, topic, each.label) for each in busy), "flows that work")


@contextmanager
def watch_working_flows(
    lab: Lab,
    topic: str,
    busy: Mapping[Flow, bool] = _BUSY,
    *,
    canary: Mapping[str, str] | None = None,
) -> Iterator[Watch]:
    """Start an exporter as `start_exporter` does, and wait until its flows are working."""
    with start_exporter(lab, topic, busy, canary=canary) as seen:
        wait_until_working(seen, topic, busy)
        yield seen


TABLE = Path(__file__).parents[2] / "docs" / "truth-table.md"
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
"""Timeouts and deadlines of seconds, a tenth of those in the document."""

_SETTLED = DEADLINE + 2.5
"""Seconds after a fault when all earlier canaries are settled."""

_OBSERVED_SECONDS = 6.0
"""Longer than a slice, so that one ends within."""
_MAX_IN_FLIGHT = 4
_MIN_EVENTS = 2

RECORDS = 20
"""Replicated records of a topic before its flow is working."""


def documented(fault: str) -> dict[str, str]:
    """Return the cells of a fault that can be scraped, by column."""
    lines = TABLE.read_text().split("\n\n| Fault")[1].split("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    [row] = [cells for cells in rows if cells[0] == fault]
    cells = dict(zip(head, row[1:], strict=True))
    return {column: cell for column, cell in cells.items() if column != "Alerts"}


def cell(before: tuple[float, float, float], after: tuple[float, float, float]) -> str:
    """Return the table cell for the events counted between two scrapes."""
    good, total, unknown = (new - old for new, old in zip(after, before, strict=True))
    settled = "partly" if 0 < good < total else "good" if good else "bad" if total else ""
    return " ".join(filter(None, (settled, "unknown" if unknown else ""))) or "-"


def sli_cells(before: Scrape, after: Scrape, flow: str = FLOW) -> dict[str, str]:
    """Return the cells of the three SLIs between two scrapes."""
    return {
        "Availability": cell(*(s.sli(flow, "availability") for s in (before, after))),
        "Completeness": cell(*(s.sli(flow, "completeness") for s in (before, after))),
        "Data freshness": cell(*(s.sli(flow, "data_freshness", CLASS) for s in (before, after))),
    }


def states(seen: Watch) -> dict[str, str]:
    """Return `state (reason)` by flow."""
    return {each.flow.label: f"{each.state} ({each.reason})" for each in seen.exporter.overview()}


@dataclass(frozen=True)
class Observation:
    """A steady period of a fault, with the scrapes at its start and end."""

    flow: str
    start: Scrape
    end: Scrape
    seconds: float
    states: frozenset[str]

    @property
    def cells(self) -> dict[str, str]:
        """The observed cells, as from `documented`."""
        return {
            "State": " ".join(sorted(self.states)),
            **sli_cells(self.start, self.end, self.flow),
        }

    def counted(self, sli: str, tier: str = "all") -> tuple[float, float, float]:
        """Return the good, total and unknown events of the period."""
        before, after = (s.sli(self.flow, sli, tier) for s in (self.start, self.end))
        good, total, unknown = (new - old for new, old in zip(after, before, strict=True))
        return good, total, unknown

    @property
    def due_canaries(self) -> object:
        """Two canaries per second, within what a process that stalls for five seconds is behind."""
        return pytest.approx(2 * self.seconds, abs=10)

    def increase(self, name: str, **labels: str) -> float:
        """Return the increase of the sum of a metric's series."""
        return total(self.end, name, **labels) - total(self.start, name, **labels)


def observe_faults(seen: Watch, faults: Mapping[str, str]) -> dict[str, Observation]:
    """Wait until each flow has the documented state of its fault, then observe a steady period."""
    expected = {flow: documented(fault)["State"] for flow, fault in faults.items()}
    fault_at = time.time()
    start = seen.until(
        lambda _: time.time() > fault_at + _SETTLED and states(seen) == expected,
        f"the states {expected}",
    )
    started = time.time()
    observed: dict[str, set[str]] = {flow: set() for flow in faults}

    def is_over(_scrape: Scrape) -> bool:
        for flow, state in states(seen).items():
            observed[flow].add(state)
        return time.time() > started + _OBSERVED_SECONDS

    end = seen.until(is_over, "the end of the period")
    seconds = time.time() - started
    return {
        flow: Observation(flow, start, end, seconds, frozenset(observed[flow])) for flow in faults
    }


def observe_fault(seen: Watch, fault: str) -> Observation:
    """Observe the fault of the only flow."""
    return observe_faults(seen, {FLOW: fault})[FLOW]


def is_working(scrape: Scrape, topic: str, flow: str = FLOW) -> bool:
    """Return whether records, canaries and slices of a flow arrive."""
    return (
        scrape.sli(flow, "availability")[0] >= _MIN_EVENTS
        # No canary from the start is pending, which a test would count: while a flow starts, some
        # find no topic; a working flow has few in flight.
        and (scrape.value("mm2_canary_pending", flow=flow) or 0) <= _MAX_IN_FLIGHT
        and total(scrape, "mm2_replicated_source_offset", flow=flow, topic=topic) >= RECORDS
        and scrape.sli(flow, "data_freshness", CLASS)[0] >= _MIN_EVENTS
    )


def total(scrape: Scrape, name: str, **labels: str) -> float:
    """Return the sum of a metric's series that have *labels*."""
    return sum(scrape.values(name, **labels).values())
