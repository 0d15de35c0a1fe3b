"""Runs a lab with exporter and report service, and kills MirrorMaker 2."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml
from canary_log import CopyListener, events, sent_canaries
from cli_process import run_mm2slo
from exporter_watch import Scrape

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import accepts, free_ports, wait_for
from mm2slo_lab.running_lab import Lab
from slo_scenario import (
    DEADLINE,
    HEARTBEATS,
    INSTANCE,
    OWN_TOPIC,
    SCRAPE,
    STEP,
    TIERS,
    SloScenario,
)


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
