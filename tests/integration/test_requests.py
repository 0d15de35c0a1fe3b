"""Kafka requests depend on cycles, not on partitions or scrapes."""

import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from large_flow import LargeFlow, Shape

from mm2slo_cli.exporter import run_exporter
from mm2slo_core.config.config_loader import load_config
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_lab.managed_process import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

SHAPE = Shape(topics=30, partitions=5, groups=10)  # fit in one request
PARTITIONS = 150
REQUEST_METHODS = (
    "topics",
    "identify",
    "start_identify",
    "end_offsets",
    "start_offsets",
    "offsets_at",
    "topic_configs",
    "groups",
    "group_offsets",
    "group_members",
    "first_records",
)
READERS = ("cluster-", "flow-", "internals-", "probes-", "own_topics-", "history-")
SETTINGS = {
    "listen": "127.0.0.1:0",
    "granularity": "partition",
    "poll_interval": "500ms",
    "start_offsets_interval": "3s",
    "metadata_interval": "5s",
    "groups_interval": "5s",
    "topic_configs_interval": "300s",
    "timeline": {"arrivals": False},  # their pace is that of a clock
}


@pytest.fixture(scope="module")
def flow() -> Iterator[LargeFlow]:
    with LargeFlow.start(SHAPE, broker_heap=384) as flow:
        yield flow


class Calls:
    """Counts calls of cluster clients, and records their threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.threads: set[str] = set()
        for name in REQUEST_METHODS:
            monkeypatch.setattr(ClusterClient, name, self._counted(name))

    def _counted(self, name: str) -> Any:
        plain = getattr(ClusterClient, name)

        def counted(client: ClusterClient, *arguments: Any, **named: Any) -> Any:
            thread = threading.current_thread().name
            self.threads.add(thread)
            if thread.startswith(("flow-", "cluster-")):
                self.counts[client.alias, name] += 1
            return plain(client, *arguments, **named)

        return counted


def scrape(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


READY = 'mm2_exporter_flow_ready{flow="us->eu",source="us",target="eu"} 1'


def test_kafka_requests_depend_on_cycles_only(
    flow: LargeFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    config = load_config(flow.lab.config_yaml(flow={"topics": [".*"]}, exporter=SETTINGS))
    with run_exporter(lambda: config) as (exporter, server):
        wait_for(lambda: READY in scrape(server.url), "the flow to be ready")
        calls.counts.clear()
        before = Counter(exporter._flows.request_totals())
        pause = threading.Event()
        scrapes = 0
        # Long enough for two reports of librdkafka's request counts, which are 10 s apart.
        until = time.monotonic() + 21
        while time.monotonic() < until:
            text = scrape(server.url)
            scrapes += 1
            pause.wait(0.05)
        cycles = calls.counts["us", "end_offsets"]
        sent = Counter(exporter._flows.request_totals())
        sent.subtract(before)
    assert text.count("\nmm2_replication_lag_records{") == PARTITIONS + 1  # and heartbeats
    assert scrapes > 2 * cycles
    for alias in ("us", "eu"):
        counts = {name: calls.counts[alias, name] for name in REQUEST_METHODS}
        assert 10 <= counts["end_offsets"] <= 46, counts
        assert 1 <= counts["start_offsets"] <= 8, counts
        assert counts["start_offsets"] < counts["end_offsets"], counts
        assert counts["topic_configs"] <= 1, counts
        assert counts["topics"] <= 5, counts
        # One broker, so one request per reading; metadata requests depend on topics.
        asked = counts["end_offsets"] + counts["start_offsets"]
        assert sent[alias, "ListOffsets"] <= 1.5 * asked + 20 < PARTITIONS, sent
    other_threads = {name for name in calls.threads if not name.startswith(READERS)}
    assert not other_threads, "only reader threads may call Kafka; a scrape must not"
