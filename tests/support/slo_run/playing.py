"""The run itself: a lab, the programs as a user starts them, a kill of MirrorMaker 2."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import yaml
from canary_log import Listener, events, sent_canaries
from programs import program
from watching import Scrape

from mm2slo_lab import Lab, LabTopology
from mm2slo_lab.ports import accepts, free_ports
from mm2slo_lab.waiting import wait_for
from slo_run import DEADLINE, INSTANCE, MINUTE, OWN, SCRAPE, SHARED, TIERS, Story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_core.topology import Flow
    from mm2slo_lab.jars import Progress


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
        each["canary"] = canary | ({"carrier": "topic"} if each["flow"] == OWN.label else {})
    document["audit"] = {"store": f"sqlite:///{folder}/results.db"}
    document["report"] = {"listen": f"127.0.0.1:{report}", "reports_per_minute": 1000}
    return yaml.safe_dump(document, sort_keys=False)


def _prepare(lab: Lab) -> dict[Flow, tuple[str, str]]:
    """Carrier topics and their copies; the target's brokers stamp what is appended to these."""
    carriers = {
        OWN: ("mm2slo.canary", lab.topology.remote_topic(OWN, "mm2slo.canary")),
        SHARED: ("heartbeats", lab.topology.heartbeats_topic(SHARED)),
    }
    lab.cluster(OWN.source).admin.create_topic("mm2slo.canary", 4)
    for flow, (_, copy) in carriers.items():
        admin = lab.cluster(flow.target).admin
        wait_for(lambda a=admin, c=copy: a.partition_count(c) > 0, f"the topic {copy}")  # type: ignore[misc]
        admin.set_topic_configs(copy, {"message.timestamp.type": "LogAppendTime"})
    return carriers


@contextmanager
def played(folder: Path, progress: Progress) -> Iterator[Story]:
    """The run, when it is over, while all its programs are still there."""
    # Rare commits, so that a kill makes MirrorMaker 2 copy something again.
    rare = {f"{each}.offset.flush.interval.ms": "60000" for each in ("us", "eu")}
    with ExitStack() as stack:
        lab = stack.enter_context(Lab.start(LabTopology(mm2_properties=rare), progress=progress))
        carriers = _prepare(lab)
        listening = {
            flow: stack.enter_context(
                Listener(
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
            program(folder / "report.log", "report", "serve", "--config", str(config))
        )
        wait_for(lambda: accepts(report), "the report service")
        # Not near a scrape, so that it is certain which one is the first to find the exporter.
        wait_for(lambda: 1 < time.time() % SCRAPE < 3, "a scrape to pass")
        stack.enter_context(program(folder / "exporter.log", "exporter", "--config", str(config)))
        told = Story(f"http://127.0.0.1:{report}")
        _begin(told, exporter)
        _play(told, lab)
        for flow, (topic, _) in carriers.items():
            source = lab.cluster(flow.source).librdkafka()
            told.sent[flow] = sent_canaries(source, topic, INSTANCE, flow.label)
            copies = listening[flow].copies(INSTANCE, flow.label)
            told.log[flow] = events(told.sent[flow], copies, DEADLINE, TIERS)
        yield told


def _begin(told: Story, exporter: int) -> None:
    """Wait for the exporter's indicators, and note which scrape is the first to find them."""
    wait_for(lambda: accepts(exporter), "the exporter")
    served = time.time()
    address = f"http://127.0.0.1:{exporter}"
    wait_for(
        lambda: len(Scrape.fetch(address).values("mm2_sli_events_total")) >= 11,
        "the exporter's indicators",
    )
    first = time.time() // SCRAPE * SCRAPE + SCRAPE
    # Where a scrape has found the page without them, they are known to start at zero.
    told.first_scrape = first if served > first - SCRAPE else served
    told.known_since = int(first) // MINUTE * MINUTE


def _play(told: Story, lab: Lab) -> None:
    # Most of a minute's canaries before the first instant that is looked at.
    told.calm = (told.known_since + MINUTE) + (MINUTE if told.first_scrape % MINUTE > 10 else 0)
    told.hear(told.calm)
    lab.mm2.kill()
    told.hear(told.killed)
    lab.mm2.start(wait=False)
    told.hear(told.killed + MINUTE)
    told.hear(told.end)
    told.look_back()
