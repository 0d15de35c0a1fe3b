"""Runs an exporter for a lab, and scrapes its /metrics."""

from __future__ import annotations

import itertools
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from prometheus_client.parser import text_string_to_metric_families

from mm2slo_cli.exporter import run_exporter
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.topology import Flow
from mm2slo_exporter.service.exporter_service import Exporter
from mm2slo_exporter.service.flow_runner import FlowRunner
from mm2slo_lab.lab_topology import ADMIN, User
from mm2slo_lab.managed_process import PATIENCE
from mm2slo_lab.running_lab import Lab

FAST = {
    "listen": "127.0.0.1:0",
    "poll_interval": "500ms",
    "start_offsets_interval": "1s",
    "metadata_interval": "1s",
    "groups_interval": "1s",
    "topic_configs_interval": "2s",
    "granularity": "partition",
}


@dataclass(frozen=True)
class Scrape:
    """One scrape: samples by name and labels."""

    samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    @classmethod
    def fetch(cls, url: str) -> Scrape:
        """Scrape the exporter at *url*; raises OSError if it does not respond."""
        with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return cls({_series(name): float(value) for name, _, value in lines})

    def value(self, name: str, **labels: str) -> float | None:
        """The only sample of *name* with *labels*; None if there is no such sample."""
        found = self.values(name, **labels)
        if len(found) > 1:
            raise AssertionError(f"{len(found)} series of {name} match {labels}: name more labels")
        return next(iter(found.values()), None)

    def values(self, name: str, **labels: str) -> dict[frozenset[tuple[str, str]], float]:
        """All samples of *name* with *labels*."""
        wanted = set(labels.items())
        return {
            found: value
            for (sample, found), value in self.samples.items()
            if sample == name and wanted <= found
        }

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """The samples of *name* with *labels* by the value of *label*."""
        found = self.values(name, **labels)
        return {dict(each)[label]: value for each, value in found.items()}

    def active(self, label: str, name: str, **labels: str) -> set[str]:
        """The values of *label* on the samples of *name* with *labels* that are not 0."""
        found = self.values(name, **labels)
        return {dict(each)[label] for each, value in found.items() if value}

    def state(self, flow: str) -> str | None:
        """A flow's state; None if it is not published."""
        return next(iter(self.active("state", "mm2_flow_state", flow=flow)), None)

    def sli(self, flow: str, sli: str, tier: str = "all") -> tuple[float, float, float]:
        """Good, total and unknown events of an SLI."""
        good, total, unknown = (
            self.value(f"mm2_sli_{name}", flow=flow, sli=sli, tier=tier) or 0.0
            for name in ("good_events_total", "events_total", "unknown_events_total")
        )
        return good, total, unknown


@cache
def _series(text: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """Name and labels. Cached: the parser takes most of the time of a scrape."""
    ((sample,),) = (family.samples for family in text_string_to_metric_families(f"{text} 0\n"))
    return sample.name, frozenset(sample.labels.items())


@dataclass
class Watch:
    """A running exporter, and its scrapes."""

    exporter: Exporter
    url: str
    scrapes: list[Scrape] = field(default_factory=list)

    def scrape(self) -> Scrape:
        """Scrape now."""
        found = Scrape.fetch(self.url)
        self.scrapes.append(found)
        return found

    def until(
        self, condition: Callable[[Scrape], object], what: str, timeout: float = PATIENCE
    ) -> Scrape:
        """Scrape until *condition* holds; fails with *what* after *timeout* seconds."""
        deadline = time.monotonic() + timeout
        pause = threading.Event()
        while True:
            found = self.scrape()
            if condition(found):
                return found
            if time.monotonic() > deadline:
                states = {flow: found.state(flow) for flow in found.by("flow", "mm2_flow_state")}
                raise AssertionError(f"waited {timeout:.0f} s for {what}; states {states}")
            pause.wait(0.25)

    def until_ready(self) -> Scrape:
        """Wait until all flows are ready."""
        return self.until(
            lambda s: (found := s.values("mm2_exporter_flow_ready")) and all(found.values()),
            "all flows to be ready",
        )

    def after_cycles(self, count: int = 3) -> Scrape:
        """Wait for *count* more cycles of both clusters."""
        start = _cycles(self.scrape())
        # The cycles in progress at the first scrape do not count.
        return self.until(
            lambda s: min(_cycles(s)[each] - start[each] for each in start) >= count + 2,
            f"{count} cycles",
            180,
        )

    def runner(self, flow: str) -> FlowRunner:
        """The exporter's runner of *flow*."""
        return next(each for each in self.exporter._flows.running() if each.flow.label == flow)


def _cycles(scrape: Scrape) -> dict[frozenset[tuple[str, str]], float]:
    return scrape.values("mm2_exporter_collect_duration_seconds_count", stage="end_offsets")


@contextmanager
def watch(
    lab: Lab,
    flows: Sequence[Flow | str] = (),
    *,
    flow: Mapping[str, object] | None = None,
    exporter: Mapping[str, object] | None = None,
    user: User = ADMIN,
) -> Iterator[Watch]:
    """Run an exporter in this process; *flow* and *exporter* override settings."""
    settings = {**FAST, **(exporter or {})}
    text = lab.config_yaml(flow=dict(flow or {}), exporter=settings, user=user)
    labels = [str(each) for each in flows]
    with run_exporter(lambda: load_config(text), labels) as (service, server):
        yield Watch(service, server.url)


def counters_never_decreased(scrapes: Sequence[Scrape]) -> list[str]:
    """Describe counters that decreased between two scrapes."""
    decreased = []
    for earlier, later in itertools.pairwise(scrapes):
        for (name, labels), value in earlier.samples.items():
            if not name.endswith(("_total", "_count", "_bucket")):
                continue
            after = later.samples.get((name, labels))
            if after is not None and after < value:
                decreased.append(f"{name}{dict(labels)} decreased from {value} to {after}")
    return decreased
