"""`mm2slo demo --once`: figures compared with an independent client, exit and cleanup."""

import json
import re
import signal
import struct
import subprocess
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from confluent_kafka import Consumer, TopicPartition
from demos import PROGRAM, all_exited, descendants, environment

from mm2slo_cli import demo
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("demo")]

FLOWS = ["us->eu", "eu->us"]
TOPICS = {"us->eu": {"orders", "payments"}, "eu->us": {"orders", "clicks"}}


@dataclass
class Demo:
    """A running demo that has printed its figures."""

    process: subprocess.Popen[str]
    folder: Path
    figures: dict[str, Any]

    def flow(self, label: str) -> dict[str, Any]:
        (found,) = [flow for flow in self.figures["flows"] if flow["flow"] == label]
        return dict(found)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    with subprocess.Popen(
        [PROGRAM, "demo", "--once", "--json", "--keep"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            yield Demo(process, folder, json.loads(line))
        finally:
            if process.poll() is None:
                process.kill()


def read_whole(servers: str, topic: str) -> dict[int, list[tuple[int, bytes, bytes]]]:
    """Offset, key and value of every record, by partition."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "independent", "enable.auto.commit": False}
    )
    found: dict[int, list[tuple[int, bytes, bytes]]] = defaultdict(list)
    try:
        left = {}
        for partition in consumer.list_topics(topic, timeout=60).topics[topic].partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
            if high > low:
                left[partition] = high
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        while left:
            message = consumer.poll(30)
            assert message is not None, f"{topic}: no record in 30 s, {left} left"
            assert message.error() is None, message.error()
            offset, partition = message.offset(), message.partition()
            key, value = message.key(), message.value()
            assert offset is not None
            assert partition is not None
            found[partition].append((offset, key or b"", value or b""))
            if offset + 1 >= left[partition]:
                del left[partition]
    finally:
        consumer.close()
    return found


def committed(servers: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    try:
        partitions_of_topic = [TopicPartition(topic, partition) for partition in range(partitions)]
        offsets = consumer.committed(partitions_of_topic, timeout=60)
        return {each.partition: each.offset for each in offsets if each.offset >= 0}
    finally:
        consumer.close()


def checkpoints(servers: str, topic: str) -> dict[tuple[str, str, int], int]:
    """Newest downstream offset by group, topic and partition (connect-mirror's Checkpoint)."""
    newest = {}
    for records in read_whole(servers, topic).values():
        for _, key, value in records:
            names, rest = [], key
            for _ in range(2):
                (length,) = struct.unpack(">h", rest[:2])
                names.append(rest[2 : 2 + length].decode())
                rest = rest[2 + length :]
            (partition,) = struct.unpack(">i", rest)
            _, _, downstream = struct.unpack(">hqq", value[:18])
            newest[names[0], names[1], partition] = downstream
    return newest


@pytest.mark.parametrize("label", FLOWS)
def test_demo_offsets_match_independent_client(kept: Demo, label: str) -> None:
    source, _, target = label.partition("->")
    servers, flow = kept.figures["bootstrap_servers"], kept.flow(label)
    assert set(flow["topics"]) == TOPICS[label]
    for topic, figures in flow["topics"].items():
        original = read_whole(servers[source], topic)
        copy = read_whole(servers[target], f"{source}.{topic}")
        assert copy == original
        written = sum(map(len, original.values()))
        assert written > 0
        assert figures == {
            "source_end": written,
            "target_end": written,
            "replicated": written,
            "lag_records": 0,
        }
    assert (flow["lag_records"], flow["lag_seconds"]) == (0, 0.0)
    assert flow["stalled_partitions"] == []


@pytest.mark.parametrize("label", FLOWS)
def test_demo_redelivery_bounds_contain_actual_redelivery(kept: Demo, label: str) -> None:
    source, _, target = label.partition("->")
    servers, flow = kept.figures["bootstrap_servers"], kept.flow(label)
    marks = checkpoints(servers[target], f"{source}.checkpoints.internal")
    assert len(flow["groups"]) == 3
    for group, figures in flow["groups"].items():
        redelivered = 0
        for topic in flow["topics"]:
            for partition, commit in committed(servers[source], group, topic, 4).items():
                # Source and target offsets are equal here: the test above compares them.
                mark = marks[group, f"{source}.{topic}", partition]
                redelivered += max(commit - mark, 0)
        assert figures["redelivery_lower"] <= redelivered <= figures["redelivery_upper"], group
        assert (figures["ready"], figures["blocked"]) == (True, [])


@pytest.mark.parametrize("label", FLOWS)
def test_demo_flows_are_alive_with_plausible_latency(kept: Demo, label: str) -> None:
    flow = kept.flow(label)
    assert flow["state"] in {"running", "idle"}
    for probe in ("canary_latency_seconds", "heartbeat_latency_seconds"):
        assert 0 < flow[probe]["p50"] <= flow[probe]["p99"] < 30


def test_demo_urls_respond(kept: Demo) -> None:
    urls = kept.figures["urls"]
    pages = {}
    for name, url in urls.items():
        with urllib.request.urlopen(url, timeout=60) as response:
            pages[name] = response.read().decode()
    assert 'mm2_flow_state{flow="us->eu"' in pages["metrics"]
    assert "eu-&gt;us" in pages["page"]
    assert '<p class="brand">MirrorMaker 2 replication</p>' in pages["report"]
    for label in FLOWS:
        # The state comes from the exporter, not from the recorder.
        slug, shown = label.replace("->", "-to-"), label.replace("->", "-&gt;")
        assert f'href="#flow-{slug}"' in pages["report"]
        assert re.search(rf"<title>{shown}: (running|idle)", pages["report"])


def test_demo_shows_log_events_of_both_flows(kept: Demo) -> None:
    def flows() -> set[str]:
        with urllib.request.urlopen(kept.figures["urls"]["logs"], timeout=60) as response:
            _, *lines = response.read().decode().splitlines()
        return {json.loads(line)["event"].get("flow") for line in lines}

    wait_for(lambda: flows() >= set(FLOWS), "events of both flows")


def test_audit_of_demo_matches_every_record(kept: Demo, tmp_path: Path) -> None:
    config = {
        "clusters": {
            alias: {"bootstrap_servers": servers}
            for alias, servers in kept.figures["bootstrap_servers"].items()
        },
        "flows": [{"flow": label, "offset_flush_interval": "1s"} for label in FLOWS],
    }
    (tmp_path / "mm2slo.yaml").write_text(json.dumps(config))  # JSON is YAML
    window = ["--from", "2020-01-01", "--sample", "100%", "--flow", "us->eu"]
    command = [str(PROGRAM), "audit", "--config", "mm2slo.yaml", *window, "--report", "report.json"]
    found = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert (found.returncode, "Traceback" in found.stderr) == (0, False), found.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    ends = {name: topic["source_end"] for name, topic in kept.flow("us->eu")["topics"].items()}
    topics = [topic for topic in report["topics"] if topic["not_audited"] is None]
    matched = {topic["sources"][0]["topic"]: topic["counts"] for topic in topics}
    assert {name: counts["matched"] for name, counts in matched.items()} == ends
    assert all(sum(counts.values()) == counts["matched"] for counts in matched.values())
    assert all(topic["end_to_end"]["records"] > 0 for topic in topics)
    *_, verdict = found.stdout.splitlines()
    assert verdict.startswith(f"verdict: clean; {sum(ends.values()):,} matched; complete up to 20")
    stages = [json.loads(line).get("stage") for line in found.stderr.splitlines()]
    assert list(dict.fromkeys(filter(None, stages))) == [
        "scoping", "starting", "reading", "judging", "publishing",
    ]  # fmt: skip


def test_demo_interrupted_leaves_no_processes_and_exits_0(kept: Demo) -> None:
    below = descendants(kept.process.pid)
    assert len(below) >= 4  # two brokers, MirrorMaker 2, the canary
    kept.process.send_signal(signal.SIGINT)
    out, err = kept.process.communicate(timeout=180)
    assert kept.process.returncode == 0
    assert out == ""  # only the one line before
    assert "Traceback" not in err
    assert all_exited(below)
    assert list(kept.folder.iterdir()) == []


def test_demo_with_stopped_mirrormaker_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stopped:
        @staticmethod
        def start(progress: Callable[[str], None]) -> Lab:
            lab = Lab.start(progress=progress)
            lab.mm2.stop()
            return lab

    monkeypatch.setattr(demo, "Lab", Stopped)
    with pytest.raises(typer.Exit) as ended:
        demo.run(25.0, once=True, as_json=True)
    assert ended.value.exit_code == 1
    out, err = capsys.readouterr()
    figures = json.loads(out)
    for flow in figures["flows"]:
        assert flow["state"] == "stopped"
        assert f"missing: {flow['flow']}: flow is stopped (" in err
