"""A drill on real clusters, compared with a consumer that logs for itself."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import flow_checks
import pytest
from alerting_lab import start_alerting_lab
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as RawPartition
from topic_reader import count_copies
from transactional_traffic import consume_and_commit

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU: Final = Flow("us", "eu")
ORDERS, GROUP = "orders", "shop"
SYNCED = {"sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "1"}
IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
POLL_SECONDS: Final = 2.0
RATE: Final = 50


@pytest.fixture(params=[{}, IDENTITY], ids=["default", "identity"])
def lab(request: pytest.FixtureRequest, lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), mm2_properties={**SYNCED, **request.param})
    topics = {(US_EU, ORDERS): (2, 300)}
    with flow_checks.start_lab(topology, lab_progress, topics) as lab:
        yield lab


def own_log(lab: Lab, report: Path, copy: str, log: dict[str, float]) -> None:
    """A consumer that starts when the drill has decided, at the start of the copy."""
    wait_for(
        lambda: report.exists() and json.loads(report.read_text())["decided_at"] is not None,
        "the decision",
        timeout=400,
        poll=0.05,
    )
    eu = lab.cluster("eu")
    ends = eu.admin.end_offsets(copy)

    def assign(consumer: Consumer, partitions: list[RawPartition]) -> None:
        log["assigned"] = time.time()
        consumer.assign(partitions)

    settings = {"group.id": "own-log", "auto.offset.reset": "earliest", "log_level": 2}
    consumer = Consumer({**eu.librdkafka(), **settings})
    consumer.subscribe([copy], on_assign=assign)
    left = sum(ends.values())
    while left:
        left -= len(consumer.consume(500, timeout=0.1))
    log["normal"] = time.time()
    consumer.close()


@pytest.mark.parametrize("behind", [0.0, 12.0])
def test_drill_agrees_with_its_ledger_and_with_a_consumers_own_log(
    lab: Lab, tmp_path: Path, behind: float
) -> None:
    """On clusters of the user: the fault is a command, and a real group has a stand-in."""
    us = lab.cluster("us")
    consume_and_commit(us.librdkafka(), ORDERS, GROUP, 200)
    wait_for(lambda: count_copies(lab, ORDERS) == 300, "copies")
    (tmp_path / "mm2slo.yaml").write_text(lab.config_yaml(), encoding="utf-8")
    assert us.process.handle is not None
    fault = tmp_path / "fault.sh"
    stop_mirror = f"kill -9 {lab.mm2.process.handle.pid}; sleep {behind}" if behind else "true"  # type: ignore[union-attr]
    fault.write_text(f"{stop_mirror}\nkill -9 {us.process.handle.pid}\n")
    report, copy = tmp_path / "drill.json", lab.topology.remote_topic(US_EU, ORDERS)
    log: dict[str, float] = {}
    watching = threading.Thread(target=own_log, args=(lab, report, copy, log), daemon=True)
    watching.start()
    command = [
        *(sys.executable, "-m", "mm2slo_cli", "drill", "--config", str(tmp_path / "mm2slo.yaml")),
        *("--flow", "us->eu", "--confirm", "us->eu", "--fault", f"sh {fault}"),
        *("--group", GROUP, "--traffic", "10s", "--rate", str(RATE), "--rpo", "5s", "--rto", "3m"),
        *("--report", str(report), "--report", str(tmp_path / "drill.html")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    watching.join(60)
    found = json.loads(report.read_text())
    assert found["state"] == "finished", done.stderr
    shop = next(each for each in found["groups"] if each["group"] == GROUP)
    assert abs(shop["assigned_at"] - log["assigned"]) < 2
    assert abs(shop["normal_at"] - log["normal"]) < 2
    judge_recovery_point(found, behind)
    own = next(each for each in found["groups"] if each["group"] != GROUP)
    # The group went on after its commits were read for the last time; MirrorMaker 2 moves those on
    # the target for some seconds more, so that less may be read again than predicted.
    assert own["reread"] <= own["predicted_most"] + RATE * POLL_SECONDS
    assert (own["skipped"], own["problem"], shop["problem"]) == (0, "", "")
    assert shop["read"] == 100 + shop["predicted_most"]
    assert done.returncode == (1 if behind else 0)
    assert "Failover drill of us-&gt;eu: finished" in (tmp_path / "drill.html").read_text()


def test_alert_of_a_real_alertmanager_detects(lab_progress: Progress, tmp_path: Path) -> None:
    """The rules, Prometheus and Alertmanager as generated, of an exporter with canaries."""
    topology = LabTopology(flows=(US_EU,), mm2_properties=SYNCED)
    with (
        flow_checks.start_lab(topology, lab_progress, {(US_EU, ORDERS): (2, 300)}) as lab,
        start_alerting_lab(lab, tmp_path, [US_EU.label], [".*"]) as running,
    ):
        running.wait_healthy([US_EU.label])
        (tmp_path / "mm2slo.yaml").write_text(lab.config_yaml(), encoding="utf-8")
        source = lab.cluster("us").process.handle
        assert source is not None
        report = tmp_path / "drill.json"
        manager = running.monitoring.alertmanager
        command = [
            *(sys.executable, "-m", "mm2slo_cli", "drill"),
            *("--config", str(tmp_path / "mm2slo.yaml"), "--flow", "us->eu", "--confirm", "us->eu"),
            *("--fault", f"kill -9 {source.pid}", "--alertmanager", manager.url),
            *("--traffic", "5s", "--rto", "5m", "--report", str(report)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        found = json.loads(report.read_text())
        assert (found["state"], done.returncode) == ("finished", 0), done.stderr
        about = [
            each
            for each in manager.alerts()
            if "us->eu" in each["labels"].values() or each["labels"].get("cluster") == "us"
        ]
    names = {each["labels"]["alertname"] for each in about}
    assert found["detected_by"] in {f"alert {each}" for each in names}
    assert found["detected_at"] > found["fault_at"]


def judge_recovery_point(found: dict[str, Any], behind: float) -> None:
    """The figure of mm2slo is that of its last reading of the source: a poll earlier at most."""
    loss, predicted = found["loss"], found["predicted_loss"]
    assert loss["acknowledged"] > RATE * 10
    assert found["recovery_point_seconds"] >= loss["seconds"]
    assert abs(loss["seconds"] - predicted["seconds"]) <= POLL_SECONDS
    assert abs(loss["records"] - predicted["records"]) <= RATE * POLL_SECONDS
    if behind:
        assert abs(loss["seconds"] - behind) < 1
