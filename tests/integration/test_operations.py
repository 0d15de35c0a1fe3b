"""Operation of the exporter: read-only, replicas, reload, malformed records, a port in use."""

import signal
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from exporter_watch import Scrape, counters_never_decreased, watch
from process_figures import processes
from transactional_traffic import consume_and_commit

from mm2slo_core.file_syntax import dump_properties
from mm2slo_core.records.mirror_records import Checkpoint
from mm2slo_core.records.timeline_record import Side, WatermarkRecord
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.topic_tail import TopicTail
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import free_ports, wait_for
from mm2slo_lab.mirror_properties import mirror_properties
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]

TIMELINE = "mm2slo.watermarks.internal"


def writers(scrape: Scrape) -> float | None:
    return scrape.value("mm2_exporter_timeline_writer", flow="us->eu")


def test_read_only_exporter_writes_nothing_and_uses_heartbeats(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 1, {})
    timeline = f"mm2slo.{fresh_topic}.internal"
    settings = {"read_only": True, "timeline": {"topic": timeline}, "instance": fresh_topic}
    with watch(lab, ["us->eu"], flow={"slice": "2s"}, exporter=settings) as seen:
        seen.until_ready()
        later = seen.until(
            lambda s: (
                s.sli("us->eu", "availability")[1] >= 5
                and 0 < (s.value("mm2_heartbeat_age_seconds", flow="us->eu") or 0) < 5
            ),
            "five slices, and a new heartbeat",
        )
        good, total, unknown = later.sli("us->eu", "availability")
        # A slice that a busy machine did not observe is unknown, never bad.
        assert good == total > unknown
        assert not later.values("mm2_canary_sent_total")
        assert not later.values("mm2_sli_events_total", sli="completeness")
        assert not later.values("mm2_exporter_timeline_writer")
    assert eu.admin.end_offsets(timeline) == {}
    assert fresh_topic.encode() not in canary_instances(us.librdkafka(), "us->eu")


def test_second_replica_takes_over_writing(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 1, {})
    with watch(lab, ["us->eu"]) as second:
        with watch(lab, ["us->eu"]) as first:
            first.until_ready()
            second.until_ready()
            second.until(
                lambda s: sorted([writers(s) or 0, writers(first.scrape()) or 0]) == [0, 1],
                "exactly one writer",
            )
            # Each replica counts only its own canaries, so there are no duplicates.
            both = [first, second]
            for each in both:
                later = each.until(
                    lambda s: (s.value("mm2_canary_received_total", flow="us->eu") or 0) >= 5,
                    "five canaries",
                )
                assert later.value("mm2_canary_duplicates_total", flow="us->eu") == 0
            assert {b"replica-0", b"replica-1"} <= canary_instances(us.librdkafka(), "us->eu")
        second.until(lambda s: writers(s) == 1, "the second replica to write")
        produce(us.librdkafka(), fresh_topic, Load(10))
        second.until(
            lambda _s: [r.ends for r in records_of(eu.librdkafka(), fresh_topic)][-1:] == [(10,)],
            "its record",
        )
    newest = records_of(eu.librdkafka(), fresh_topic)[-1]
    assert newest.side is Side.SOURCE
    assert newest.times.previous_requested_at is not None
    assert newest.times.previous_requested_at <= newest.times.requested_at <= time.time()


def canary_instances(properties: Mapping[str, str], flow: str) -> set[bytes | None]:
    """The names in canaries of *flow* that the source holds."""
    found: set[bytes | None] = set()
    with ClusterClient("us", properties) as client:
        tail = TopicTail(client, "heartbeats", headers=True)
        while not tail.caught_up:
            headers = (dict(record.headers or []) for record in tail.poll().records)
            found.update(
                each.get("mm2slo-instance")
                for each in headers
                if each.get("mm2slo-flow") == flow.encode()
            )
        tail.close()
    return found


def records_of(properties: dict[str, str], topic: str) -> list[WatermarkRecord]:
    """Source records of *topic* in the timeline."""
    found = []
    with ClusterClient("eu", properties) as client:
        tail = TopicTail(client, TIMELINE)
        while not tail.caught_up:
            decoded = (WatermarkRecord.decode(raw.value) for raw in tail.poll().records)
            found += [r for r in decoded if r.topic == topic and r.side is Side.SOURCE]
        tail.close()
    return found


@pytest.mark.long
def test_malformed_records_are_counted_and_skipped(
    lab_factory: Callable[[], Lab], fresh_topic: str
) -> None:
    lab = lab_factory()  # a separate lab: MirrorMaker 2 reads these records as well
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 1, {})
    produce(us.librdkafka(), fresh_topic, Load(100))
    group = f"{fresh_topic}-group"
    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        assert counted(seen.scrape(), "checkpoints", "unknown_version") == 0
        good = Checkpoint("damaged", TopicPartition(f"us.{fresh_topic}", 0), 1, 1)
        producer = Producer(eu.librdkafka())
        future_version = struct.pack(">h", 7) + good.encode_value()[2:]
        producer.produce("us.checkpoints.internal", future_version, good.encode_key(), partition=0)
        producer.produce("us.checkpoints.internal", b"\x00", good.encode_key(), partition=0)
        producer.produce("us.checkpoints.internal", good.encode_value(), b"\x00", partition=0)
        producer.flush(10)
        later = seen.until(
            lambda s: counted(s, "checkpoints", "truncated") == 2, "two malformed records"
        )
        assert counted(later, "checkpoints", "unknown_version") == 1
        consume_and_commit(us.librdkafka(), fresh_topic, group, 100)
        seen.until(
            lambda s: s.value("mm2_failover_ready", flow="us->eu", group=group) == 1,
            "a group that committed afterwards",
        )


def counted(scrape: Scrape, kind: str, reason: str) -> float | None:
    return scrape.value(
        "mm2_exporter_malformed_records_total", cluster="eu", kind=kind, reason=reason
    )


def test_reload_keeps_unchanged_flows(lab: Lab, tmp_path: Path, fresh_topic: str) -> None:
    (port,) = free_ports(1)
    config, mm2 = tmp_path / "mm2slo.yaml", tmp_path / "mm2.properties"
    settings = {
        "listen": f"127.0.0.1:{port}",
        "poll_interval": "500ms",
        "metadata_interval": "1s",
    }
    document = yaml.safe_load(lab.config_yaml(exporter=settings))
    # The topics are those of MirrorMaker 2's file.
    for flow in document["flows"]:
        del flow["topics"]
    text = yaml.safe_dump(document | {"mm2": {"properties": [str(mm2)]}}, sort_keys=False)
    clients = {alias: lab.cluster(alias).java() for alias in ("us", "eu")}
    properties = mirror_properties(lab.topology, clients)
    mm2.write_text(dump_properties(properties), encoding="ascii")
    config.write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "mm2slo_cli", "exporter", "--config", str(config)],
        stdout=subprocess.DEVNULL,
    )
    try:
        seen = Remote(f"http://127.0.0.1:{port}")
        seen.until(lambda s: received(s, "us->eu") >= 3 and received(s, "eu->us") >= 3, "canaries")
        started = processes(process.pid)
        assert (len(started["fork server"]), len(started["canary"])) == (1, 1)
        config.write_text("flows: [{flow: us->us}]", encoding="utf-8")
        process.send_signal(signal.SIGHUP)
        seen.until(lambda s: reloads(s, "failure") == 1, "a reload that fails")
        before_reload = seen.scrapes[-1]
        changed = text.replace("- flow: eu->us", "- flow: eu->us\n  stall_after: 7s")
        config.write_text(changed, encoding="utf-8")
        request = urllib.request.Request(f"{seen.url}/-/reload", method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
            assert "1 flow(s) restarted" in answer.read().decode()
        seen.until(lambda s: reloads(s, "success") == 1, "a reload")
        before = received(seen.scrapes[-1], "us->eu")
        seen.until(lambda s: received(s, "us->eu") > before, "canaries after it")
        lab.cluster("eu").admin.create_topic(fresh_topic)
        properties |= {"eu->us.topics": fresh_topic}
        mm2.write_text(dump_properties(properties), encoding="ascii")
        process.send_signal(signal.SIGHUP)
        seen.until(
            lambda s: (
                source_topics(s, "eu->us") == {fresh_topic, "heartbeats"}
                and reloads(s, "success") == 2
            ),
            "the topics of MirrorMaker 2's changed file",
        )
        seen.until(lambda s: received(s, "eu->us") > 0, "canaries of the changed flow")
        # Those of the changed flow continue, too, after they were absent.
        assert counters_never_decreased(seen.scrapes) == []
        assert counters_never_decreased([before_reload, seen.scrapes[-1]]) == []
        port_in_use = subprocess.run(
            [sys.executable, "-m", "mm2slo_cli", "exporter", "--config", str(config)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert port_in_use.returncode == 2
        assert len(port_in_use.stderr.splitlines()) == 1
        assert f"127.0.0.1:{port}" in port_in_use.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    started_pids = [pid for pids in started.values() for pid in pids]
    assert [pid for pid in started_pids if Path(f"/proc/{pid}").exists()] == []


class Remote:
    """Scrapes an exporter in another process."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.scrapes: list[Scrape] = []

    def until(self, condition: Callable[[Scrape], object], what: str) -> Scrape:
        def holds() -> bool:
            try:
                self.scrapes.append(Scrape.fetch(self.url))
            except OSError:
                return False
            return bool(condition(self.scrapes[-1]))

        wait_for(holds, what)
        return self.scrapes[-1]


def reloads(scrape: Scrape, result: str) -> float | None:
    return scrape.value("mm2_exporter_config_reloads_total", result=result)


def source_topics(scrape: Scrape, flow: str) -> set[str]:
    return set(scrape.by("topic", "mm2_source_end_offset", flow=flow))


def received(scrape: Scrape, flow: str) -> float:
    return scrape.value("mm2_canary_received_total", flow=flow) or 0.0
