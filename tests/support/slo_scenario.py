"""A run of two flows with an outage, and the report service's answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import requests
import yaml
from canary_log import CopyListener, Counts, Event, Sent, count, events, sent_canaries
from cli_process import run_mm2slo
from exporter_watch import Scrape

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import accepts, free_ports, wait_for
from mm2slo_lab.running_lab import Lab


def _configuration(lab: Lab, folder: Path, exporter: int, report: int) -> str:
    settings = {
        "listen": f"127.0.0.1:{exporter}",
        "instance": INSTANCE,
        "poll_interval": "500ms",
        "metadata_interval": "1s",
    }
    canary = {"deadline": f"{DEADLINE:.0f}s", "latency_tiers": ["5s", "10s"]}
    document = yaml.safe_load(lab.config_yaml(flow={"canary": canary}, exporter=settings))
    for each in document["flows"]:
        each["canary"] = canary | ({"carrier": "topic"} if each["flow"] == OWN_TOPIC.label else {})
    document["audit"] = {"store": f"sqlite:///{folder}/results.db"}
    document["report"] = {"listen": f"127.0.0.1:{report}", "reports_per_minute": 1000}
    return yaml.safe_dump(document, sort_keys=False)


def _prepare(lab: Lab) -> dict[Flow, tuple[str, str]]:
    """Carrier topics and their copies; the copies get append times."""
    carriers = {
        OWN_TOPIC: ("mm2slo.canary", lab.topology.remote_topic(OWN_TOPIC, "mm2slo.canary")),
        HEARTBEATS: ("heartbeats", lab.topology.heartbeats_topic(HEARTBEATS)),
    }
    lab.cluster(OWN_TOPIC.source).admin.create_topic("mm2slo.canary", 4)
    for flow, (_, copy) in carriers.items():
        admin = lab.cluster(flow.target).admin
        wait_for(lambda a=admin, c=copy: a.partition_count(c) > 0, f"the topic {copy}")  # type: ignore[misc]
        admin.set_topic_configs(copy, {"message.timestamp.type": "LogAppendTime"})
    return carriers


@contextmanager
def run_scenario(folder: Path, progress: Progress) -> Iterator[SloScenario]:
    """Yield the finished run while its processes still run."""
    # Rare commits, so that MirrorMaker 2 replicates some records again after a kill.
    rare = {f"{each}.offset.flush.interval.ms": "60000" for each in ("us", "eu")}
    with ExitStack() as stack:
        lab = stack.enter_context(Lab.start(LabTopology(mm2_properties=rare), progress=progress))
        carriers = _prepare(lab)
        listening = {
            flow: stack.enter_context(
                CopyListener(
                    lab.cluster(flow.target).librdkafka(),
                    copy,
                    lab.cluster(flow.target).admin.partition_count(copy),
                )
            )
            for flow, (_, copy) in carriers.items()
        }
        exporter, report = free_ports(2)
        config = folder / "mm2slo.yaml"
        config.write_text(_configuration(lab, folder, exporter, report), encoding="utf-8")
        stack.enter_context(
            run_mm2slo(folder / "report.log", "report", "serve", "--config", str(config))
        )
        wait_for(lambda: accepts(report), "the report service")
        # Not near a scrape, so that it is known which one is the exporter's first.
        wait_for(lambda: 1 < time.time() % SCRAPE < 3, "a scrape to pass")
        stack.enter_context(
            run_mm2slo(folder / "exporter.log", "exporter", "--config", str(config))
        )
        scenario = SloScenario(f"http://127.0.0.1:{report}")
        _wait_first_scrape(scenario, exporter)
        _run_outage(scenario, lab)
        for flow, (topic, _) in carriers.items():
            source = lab.cluster(flow.source).librdkafka()
            scenario.sent[flow] = sent_canaries(source, topic, INSTANCE, flow.label)
            copies = listening[flow].copies(INSTANCE, flow.label)
            scenario.log[flow] = events(scenario.sent[flow], copies, DEADLINE, TIERS)
        yield scenario


def _wait_first_scrape(scenario: SloScenario, exporter: int) -> None:
    """Wait for the exporter's SLI metrics, and store the time of their first scrape."""
    wait_for(lambda: accepts(exporter), "the exporter")
    served = time.time()
    address = f"http://127.0.0.1:{exporter}"
    wait_for(
        lambda: len(Scrape.fetch(address).values("mm2_sli_events_total")) >= 11,
        "the exporter's SLI metrics",
    )
    first = time.time() // SCRAPE * SCRAPE + SCRAPE
    # After an earlier scrape without these metrics, the counters are known to start at 0.
    # Otherwise events are known from the second scrape on, which may be in the next step.
    is_counted = served <= first - SCRAPE
    scenario.first_scrape = served if is_counted else first
    scenario.known_since = int(first if is_counted else first + SCRAPE) // STEP * STEP


def _run_outage(scenario: SloScenario, lab: Lab) -> None:
    # A minute's canaries are before the first instant.
    scenario.before_kill = int(scenario.first_scrape + 60) // STEP * STEP + STEP
    scenario.record_answers(scenario.before_kill)
    lab.mm2.kill()
    scenario.record_answers(scenario.after_kill)
    lab.mm2.start(wait=False)
    scenario.record_answers(scenario.end)
    scenario.query_history()


OWN_TOPIC, HEARTBEATS = Flow("us", "eu"), Flow("eu", "us")
"""A flow whose canaries use their own topic, and one whose canaries use the heartbeats topic."""
INSTANCE: Final = "slo-on-the-lab"
DEADLINE: Final = 10.0
TIERS: Final = {"latency-5s": 5.0, "latency-10s": 10.0}
TIMED_SLIS: Final = ("availability", *TIERS)

STEP: Final = 300
"""Length of the report service's steps."""

SCRAPE: Final = 15
"""Default scrape interval; also the time from a step's last scrape to its end."""

PUBLISH_DELAY: Final = 4.0
"""Seconds until the exporter publishes an event: two processes and a cycle of 0.5 s."""

SCRAPE_DELAY: Final = 2.0
"""Seconds by which a scrape may be late."""

_SETTLE_SECONDS: Final = 3
"""Seconds after a step's end when the service is queried."""

FORMATS: Final = {
    "json": "application/json",
    "csv": "text/csv",
    "md": "text/markdown",
    "html": "text/html",
}


def utc(at: float) -> str:
    """Format a time as the service does."""
    return f"{datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()}Z"


@dataclass
class SloScenario:
    """The service's answers during the run and afterwards, and the canary log."""

    url: str
    first_scrape: float = 0.0
    """Earlier events are unknown."""
    known_since: int = 0
    """The start of the first step."""
    before_kill: int = 0
    """The end of the step at which MirrorMaker 2 was killed; the other instants follow by steps."""
    live_lists: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Lists by instant, queried right after it."""
    live_details: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    lists: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The same lists, queried at the end."""
    details: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    histories: dict[str, dict[str, Any]] = field(default_factory=dict)
    one_step_reports: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    """Reports for a period of one step."""
    formats: dict[tuple[int, str], tuple[str, str]] = field(default_factory=dict)
    """Reports requested by `format` and by `Accept`."""
    sent: dict[Flow, list[Sent]] = field(default_factory=dict)
    log: dict[Flow, dict[str, list[Event]]] = field(default_factory=dict)

    @property
    def after_kill(self) -> int:
        """A step after the kill, when MirrorMaker 2 was started again."""
        return self.before_kill + STEP

    @property
    def end(self) -> int:
        """When all events are settled."""
        return self.before_kill + 2 * STEP

    @property
    def instants(self) -> range:
        """The three instants that tests compare."""
        return range(self.before_kill, self.end + 1, STEP)

    def get(self, path: str, accept: str = "*/*", **query: str) -> requests.Response:
        """Query the service; the status must be 200."""
        answer = requests.get(
            f"{self.url}{path}", params=query, headers={"Accept": accept}, timeout=60
        )
        assert answer.status_code == 200, answer.text
        return answer

    def objective_ids(self) -> list[str]:
        """Ids of all objectives."""
        return sorted(each["id"] for each in self.live_lists[self.before_kill]["entries"])

    def record_answers(self, instant: int) -> None:
        """Wait until the service reports *instant*, then store its answers."""
        left = instant + _SETTLE_SECONDS - time.time()
        wait_for(lambda: time.time() >= instant + _SETTLE_SECONDS, utc(instant), left + 10)

        def is_reported() -> bool:
            self.live_lists[instant] = self.get("/slo").json()
            as_of: str = self.live_lists[instant]["as_of"]
            return as_of == utc(instant)

        wait_for(is_reported, f"the report at {utc(instant)}")
        for slo in self.objective_ids():
            self.live_details[instant, slo] = self.get(f"/slo/{slo}").json()

    def query_history(self) -> None:
        """Query all instants after the run."""
        since = utc(self.known_since)
        for instant in self.instants:
            at = utc(instant)
            self.lists[instant] = self.get("/slo", at=at).json()
            for slo in self.objective_ids():
                self.details[instant, slo] = self.get(f"/slo/{slo}", at=at).json()
                self.one_step_reports[instant, slo] = self.get(
                    f"/slo/{slo}", at=at, period="5m"
                ).json()
            for form, media in FORMATS.items():
                named = self.get("/slo/report", at=at, format=form)
                wanted = self.get("/slo/report", at=at, accept=media)
                assert named.headers["content-type"].partition(";")[0] == media
                assert wanted.headers["content-type"] == named.headers["content-type"]
                self.formats[instant, form] = named.text, wanted.text
        for slo in self.objective_ids():
            query = {"from": since, "to": utc(self.end), "step": "5m"}
            self.histories[slo] = self.get(f"/slo/{slo}/history", **query).json()

    def truth(self, flow: Flow, name: str, start: float, end: int) -> Counts:
        """Counts by the log for scrapes after *start* up to the last one before *end*."""
        return count(
            self.log[flow][name], start, end - SCRAPE, shown=PUBLISH_DELAY, late=SCRAPE_DELAY
        )

    def so_far(self, flow: Flow, name: str, instant: int) -> Counts:
        """Counts by the log since the first scrape."""
        return self.truth(flow, name, self.first_scrape, instant)
