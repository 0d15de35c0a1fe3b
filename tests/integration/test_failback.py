"""The way back on real clusters: with the plan no record returns twice, without it as predicted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import flow_checks
import pytest
from audit_scenario.audit_process import FAST_SPARK
from topic_reader import read_topic

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress, classpath, find_java
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.mirror_processes import ConnectWorker
from mm2slo_lab.mirror_properties import connectors, render_config
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU: Final = Flow("us", "eu")
EU_US: Final = US_EU.reverse
ORDERS: Final = "orders"
IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


@dataclass
class RoundTrip:
    """A lab whose consumers move back and forth, and its commands."""

    lab: Lab
    folder: Path
    written: int = 0
    ends: dict[Flow, Path] = field(default_factory=dict)

    def cli(self, *arguments: str, exits: int = 0) -> str:
        config = str(self.folder / "mm2slo.yaml")
        command = [sys.executable, "-m", "mm2slo_cli", *arguments, "--config", config]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == exits, done.stdout + done.stderr
        return done.stdout

    def produce(self, alias: str, count: int) -> None:
        """Records of all partitions, each with another value."""
        produce(self.lab.cluster(alias).librdkafka(), ORDERS, Load(count, first=self.written))
        self.written += count

    def values(self, alias: str) -> Counter[bytes | None]:
        found = read_topic(self.lab.cluster(alias).librdkafka(), ORDERS)
        return Counter(each.value() for each in found)

    def count(self, alias: str) -> int:
        return sum(self.lab.cluster(alias).admin.end_offsets(ORDERS).values())

    def wait_copied(self, alias: str) -> None:
        wait_for(lambda: self.count(alias) >= self.written, f"{self.written} records on {alias}")

    def record(self, flow: Flow) -> None:
        self.ends[flow] = self.folder / f"{flow.slug}-{self.written}.json"
        self.cli("failback", "record", "--flow", flow.label, "--out", str(self.ends[flow]))

    def plan(self, moved: Flow, *options: str) -> str:
        """What is printed of the way back after a failover over *moved*."""
        files = ("--ends", str(self.ends[moved]), "--out", str(self.folder / "positions"))
        return self.cli("failback", "plan", "--flow", moved.label, *files, *options)

    def starts(self, moved: Flow) -> list[dict[str, Any]]:
        document = json.loads(self.plan(moved, "--json"))
        starts: list[dict[str, Any]] = document["starts"]
        return [each for each in starts if each["topic"] == ORDERS]

    def audit(self, flow: Flow, exits: int = 0) -> str:
        spark = (part for each in FAST_SPARK.items() for part in ("--spark-conf", "=".join(each)))
        command = ("audit", "--flow", flow.label, "--topic", ORDERS, "--since", "1h", *spark)
        options = ("--sample", "100%", "--master", "local[1]", "--fail-on", "duplicates")
        stored = ("--store", str(self.folder / "store.db"), "--directory", str(self.folder / "at"))
        return self.cli(*command, *options, *stored, exits=exits)


def both_ways(lab: Lab, folder: Path) -> RoundTrip:
    """The configuration has both flows, of which one runs at a time."""
    both = replace(lab.topology, flows=(US_EU, EU_US))
    clusters = {alias: lab.cluster(alias).yaml() for alias in both.clusters}
    text = render_config(both, clusters)
    (folder / "mm2slo.yaml").write_text(text, encoding="utf-8")
    return RoundTrip(lab, folder)


def run_script(script: str, replaced: Mapping[str, str], path: str = "") -> None:
    """Run printed commands as a user pastes them."""
    for given, here in replaced.items():
        script = script.replace(given, here)
    commands = script[script.index("# 1.") :]
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", commands],
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def connect(
    lab_progress: Progress, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RoundTrip]:
    topology = LabTopology(flows=(US_EU,), engine=LabEngine.CONNECT, mm2_properties=IDENTITY)
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, ORDERS): (3, 0)}) as lab:
        made = both_ways(lab, tmp_path_factory.mktemp("failback"))
        both = replace(topology, flows=(US_EU, EU_US))
        clients = {alias: lab.cluster(alias).java() for alias in topology.clusters}
        for name, config in connectors(both, EU_US, clients).items():
            if "Heartbeat" not in name:
                body: Any = {"name": name, "config": config, "initial_state": "STOPPED"}
                lab.connect("us").rest("POST", "/connectors", body)
        yield made


def move_on_connect(trip: RoundTrip, moved: Flow, count: int) -> None:
    """Move from the source of *moved* to its target, write there, and start the flow back."""
    trip.wait_copied(moved.target)
    worker = trip.lab.connect(moved.target)
    stop_on_connect(worker, moved, "Source")
    stop_on_connect(worker, moved, "Checkpoint")
    trip.record(moved)
    trip.produce(moved.target, count)
    starts = trip.starts(moved)
    assert [(each["proved"], each["duplicates_at_most"]) for each in starts] == [(True, 0)] * 3, (
        starts
    )
    run_script(trip.plan(moved), workers_of(trip))
    trip.wait_copied(moved.source)


def stop_on_connect(worker: ConnectWorker, flow: Flow, kind: str) -> str:
    """Stop a connector and wait until it has no tasks; returns its path."""
    path = f"/connectors/{flow.source}-%3E{flow.target}.Mirror{kind}Connector"
    worker.rest("PUT", f"{path}/stop")
    wait_for(lambda: not worker.rest("GET", f"{path}/status")["tasks"], f"{path} to stop")
    return path


def workers_of(trip: RoundTrip) -> dict[str, str]:
    return {
        f"CONNECT-{alias}:8083": f"127.0.0.1:{trip.lab.connect(alias).rest_port}"
        for alias in ("us", "eu")
    }


def has_returned(trip: RoundTrip, moved: Flow) -> bool:
    return {each["basis"] for each in trip.starts(moved)} == {"returned"}


def test_both_directions_twice_without_loss_and_duplicates(connect: RoundTrip) -> None:
    trip = connect
    trip.produce("us", 500)
    for moved in (US_EU, EU_US, US_EU, EU_US):
        move_on_connect(trip, moved, 250)
        # Positions are committed a moment later; then the plan leaves them as they are.
        wait_for(partial(has_returned, trip, moved), "the positions of the flow back")
        for alias in ("us", "eu"):
            assert set(trip.values(alias).values()) == {1}
            assert trip.count(alias) == trip.written
    for flow in (US_EU, EU_US):
        trip.audit(flow)


def test_without_the_plan_as_many_duplicates_as_predicted(connect: RoundTrip) -> None:
    trip = connect
    trip.produce("us", 100)
    trip.wait_copied("eu")
    back = trip.lab.connect("us")
    stop_on_connect(trip.lab.connect("eu"), US_EU, "Source")
    path = stop_on_connect(back, EU_US, "Source")
    back.rest("DELETE", f"{path}/offsets")
    trip.record(US_EU)
    predicted = sum(each["duplicates_without_plan"] for each in trip.starts(US_EU))
    assert predicted == trip.written
    trip.produce("eu", 50)
    back.rest("PUT", f"{path}/resume")
    expected = trip.written + predicted
    wait_for(lambda: trip.count("us") >= expected, f"{expected} records on us")
    found = trip.values("us")
    assert found.total() - len(found) == predicted
    assert str(predicted) in trip.audit(EU_US, exits=1).replace(",", "")


@pytest.fixture(params=[{}, IDENTITY], ids=["default", "identity"])
def dedicated(
    request: pytest.FixtureRequest, lab_progress: Progress, tmp_path: Path
) -> Iterator[RoundTrip]:
    topology = LabTopology(flows=(US_EU,), mm2_properties=request.param)
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, ORDERS): (3, 0)}) as lab:
        yield both_ways(lab, tmp_path)


def kafka_tools(lab: Lab, folder: Path) -> str:
    """A folder with the scripts of Kafka's distribution that a plan names."""
    script = folder / "kafka-console-producer.sh"
    jars, java = classpath(lab.topology.kafka_version), find_java(17)
    script.write_text(f'#!/bin/sh\n{java} -cp {jars} org.apache.kafka.tools.ConsoleProducer "$@"\n')
    script.chmod(0o755)
    return str(folder)


def is_disabled(lab: Lab) -> bool:
    stored = read_topic(lab.cluster("eu").librdkafka(), "mm2-configs.us.internal")
    source = [each for each in stored if each.key() == b"connector-MirrorSourceConnector"]
    return b'"enabled":"false"' in (source[-1].value() or b"")


def test_dedicated_mode_with_records_for_its_offsets_topic(
    dedicated: RoundTrip, tmp_path: Path
) -> None:
    trip, lab = dedicated, dedicated.lab
    copy = lab.topology.remote_topic(US_EU, ORDERS)
    trip.produce("us", 200)
    wait_for(lambda: sum(lab.cluster("eu").admin.end_offsets(copy).values()) == 200, "copies")
    # As the plan says: a flow that is disabled and reversed in one restart runs for a moment.
    lab.mm2.configure({"us->eu.enabled": "false"})
    lab.mm2.restart(wait=False)
    wait_for(lambda: is_disabled(lab), "us->eu to be stored as disabled")
    lab.mm2.stop()
    trip.produce("us", 20)  # acknowledged, and never copied
    trip.record(US_EU)
    produce(lab.cluster("eu").librdkafka(), copy, Load(50, first=1_000))
    if copy != ORDERS:
        document = json.loads(trip.plan(US_EU, "--json"))
        assert document["never_returning"] == [copy]
        assert document["starts"] == []
        return
    script = trip.plan(US_EU)
    lab.mm2.configure({"us->eu.enabled": "false", "eu->us.enabled": "true"})
    run_script(script, {}, kafka_tools(lab, tmp_path))
    lab.mm2.start(wait=False)
    wait_for(lambda: trip.count("us") >= 270, "270 records on us")
    assert set(trip.values("us").values()) == {1}
    assert (trip.values("us") - trip.values("eu")).total() == 20
    assert "at most 20 records of us may not have been copied when the consumers moved" in script
