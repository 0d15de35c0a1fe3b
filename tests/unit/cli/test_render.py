"""`mm2slo render`: its files, its report of what a form cannot say, its exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

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


def test_render_acls_with_configuration_allow_its_own_topics(run: Run) -> None:
    Path("mm2slo.yaml").write_text(
        "mm2: {strimzi: [/etc/mm2slo/mirrormaker2.yaml]}\n"
        "clusters: {us: {security: {protocol: SASL_SSL, sasl: {mechanism: PLAIN, username: a,"
        " password: '${file:/run/secrets/a}'}}}}\n"
        "flows: [{flow: us->eu, canary: {carrier: topic, topic: orders}}]\n"
        "exporter: {state: {topic: mm2slo-a.s.internal},"
        " timeline: {topic: mm2slo-a.t.internal, arrivals: false}}\n"
    )
    code, output, errors = run("mm2.properties --to acls --for exporter --config mm2slo.yaml")
    assert (code, errors) == (0, "")
    topics = {line.split("--topic ")[1].split()[0] for line in output.splitlines()
              if "--topic " in line and "Write" in line}  # fmt: skip
    assert topics == {"orders", "mm2slo-a.s.internal", "mm2slo-a.t.internal"}


def test_render_acls_with_wrong_configuration_exits_with_2(run: Run) -> None:
    Path("mm2slo.yaml").write_text("exporter: {state: {tpic: a}}\n")
    code, _, errors = run("mm2.properties --to acls --config mm2slo.yaml")
    assert code == 2
    assert "exporter.state.tpic (line 1): unknown key" in errors


@pytest.mark.parametrize(
    ("version", "label"),
    [
        ("kafka.strimzi.io/v1", "strimzi.io/cluster"),
        ("kafka.strimzi.io/v1beta2", "strimzi.io/cluster"),
        ("eventstreams.ibm.com/v1beta2", "eventstreams.ibm.com/cluster"),
    ],
)
def test_render_kafka_users_follows_version_and_group_of_resource(
    run: Run, version: str, label: str
) -> None:
    examples = Path(__file__).parents[3] / "deploy/kubernetes/examples"
    resource = yaml.safe_load((examples / "event-streams.yaml").read_text("utf-8"))
    text = resource["mirrorMaker2"]["resource"]
    if version == "kafka.strimzi.io/v1":
        text = (examples / "mirror.yaml").read_text("utf-8")
    Path("mirror.yaml").write_text(text.replace("eventstreams.ibm.com/v1beta2", version))
    code, output, errors = run("mirror.yaml --to kafka-users --for exporter")
    assert (code, errors) == (0, "")
    for user in yaml.safe_load_all(output):
        assert user["apiVersion"] == version
        assert list(user["metadata"]["labels"]) == [label]


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
