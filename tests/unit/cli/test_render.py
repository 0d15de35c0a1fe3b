"""`mm2slo render`: its files, its report of what a form cannot say, its exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    Run = Callable[[str], tuple[int, str, str]]

PROPERTIES = """\
clusters = us, eu
us.bootstrap.servers = us:9092
eu.bootstrap.servers = eu:9092
us.security.protocol = SASL_PLAINTEXT
us.sasl.mechanism = PLAIN
us.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="mm2" password="hunter2";
us->eu.enabled = true
us->eu.topics = orders
eu->us.emit.heartbeats.enabled = false
"""
CONNECTOR = """\
{"name": "m", "config": {"connector.class": "MirrorSource",
 "source.cluster.alias": "us", "source.cluster.bootstrap.servers": "us:9092",
 "target.cluster.alias": "eu", "target.cluster.bootstrap.servers": "eu:9092"}}
"""
WORKER = "group.id=g\noffset.storage.topic=o\nstatus.storage.topic=s\nconfig.storage.topic=c\n"


@pytest.fixture
def run(mm2slo: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("mm2.properties").write_text(PROPERTIES, encoding="utf-8")
    return lambda arguments: mm2slo(f"render {arguments}")


def test_render_without_loss_prints_file_and_exits_with_0(run: Run) -> None:
    code, output, errors = run("mm2.properties --to properties")
    assert (code, errors) == (0, "")
    assert output.splitlines()[:4] == [
        "# mm2.properties",
        "# Create these secrets:",
        "#   mm2-us, key password: password of us.sasl.jaas.config (mm2.properties:6)",
        "clusters=us, eu",
    ]
    assert "hunter2" not in output


def test_render_with_loss_writes_files_reports_and_exits_with_1(run: Run) -> None:
    code, output, errors = run("mm2.properties --to strimzi --output-dir k8s")
    assert code == 1
    assert output == "wrote k8s/mm2-eu.yaml\nwrote k8s/heartbeats-us.yaml\n"
    assert [line.partition(" warning: ")[2] for line in errors.splitlines()] == [
        "us->eu writes no heartbeats: Strimzi v1 has no heartbeat connector (measure by canaries,"
        " for which there is a topic) [not-rendered]",
        "MirrorSourceConnector becomes us->eu.MirrorSourceConnector: all records are copied again"
        " (expect duplicates, or start with empty copies) [not-rendered]",
    ]
    assert "kind: KafkaMirrorMaker2" in Path("k8s/mm2-eu.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("worker", ["w.properties", "--worker w.properties"])
def test_render_reads_connectors_with_their_worker(run: Run, worker: str) -> None:
    Path("c.json").write_text(CONNECTOR, encoding="utf-8")
    Path("w.properties").write_text(WORKER, encoding="utf-8")
    assert run(f"c.json {worker} --to connect-json --output-dir .") == (
        0,
        "wrote eu-g/connect-distributed.properties\n"
        "wrote eu-g/us-to-eu.MirrorSourceConnector.json\n",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "principals"),
    [
        ("", {"User:mm2slo-mirrormaker2", "User:mm2slo-exporter", "User:mm2slo-audit"}),
        ("--for audit", {"User:mm2slo-audit"}),
        ("--for audit --for exporter --principal User:x", {"User:x"}),
    ],
)
def test_render_acls_names_principals(run: Run, arguments: str, principals: set[str]) -> None:
    code, output, _ = run(f"mm2.properties --to acls {arguments}")
    lines = [line.split() for line in output.splitlines() if line.startswith("kafka-acls.sh ")]
    assert code == 0
    assert {line[line.index("--allow-principal") + 1] for line in lines} == principals


def test_render_kafka_users_writes_one_file_per_cluster(run: Run) -> None:
    code, output, _ = run("mm2.properties --to kafka-users --for audit")
    assert code == 0
    assert [line for line in output.splitlines() if line.startswith("# ")] == [
        "# user-mm2slo-audit-eu.yaml", "# user-mm2slo-audit-us.yaml",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("mm2.properties --to xml", "unknown --to 'xml'; use one of properties, strimzi,"),
        ("missing --to acls", "cannot read 'missing'"),
        ("c.json --to acls", "the worker's group.id"),
    ],
)
def test_render_of_unusable_input_exits_with_2(run: Run, arguments: str, message: str) -> None:
    Path("c.json").write_text(CONNECTOR, encoding="utf-8")
    code, output, errors = run(arguments)
    assert (code, output) == (2, "")
    assert message in errors
