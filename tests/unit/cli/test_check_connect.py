"""`mm2slo check --connect` with clusters that return prepared answers."""

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer

from mm2slo_audit.scope import flow_topic_reader
from mm2slo_cli import check_connect
from mm2slo_cli.config_options import ConfigSource
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.kafka_permissions import AclPattern, AclRule, CheckResult, RequiredAccess
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import TailRecord

INTERNAL = ["us.heartbeats", "us.checkpoints.internal"] + [
    f"mm2-{kind}.us.internal" for kind in ("offsets", "status", "configs")
]


def problem(kind: ErrorKind, detail: str) -> KafkaOperationError:
    return KafkaOperationError(kind, cluster="us", operation="connecting", detail=detail)


@dataclass
class FakeCluster:
    """A `ClusterInspection` that allows all but *denied*."""

    alias: str
    names: Collection[str]
    group_names: Collection[str] = ("shop",)
    denied: Collection[RequiredAccess] = ()
    reports_missing: bool = True
    """Whether it reports permissions on topics that do not exist; Kafka does not."""
    unreachable: KafkaOperationError | None = None
    listener: CheckResult | None = None
    rules: list[AclRule] | KafkaOperationError = field(default_factory=list)
    clock: tuple[float, float] | KafkaOperationError = (0.0, 0.01)
    id: str | None = None

    @property
    def client(self) -> Any:
        return self  # its client has the same ACLs

    def listeners(self, servers: Iterable[str]) -> list[CheckResult]:
        ok = (CheckResult(self.alias, "connection", "ok", f"{each} answers") for each in servers)
        return [self.listener] if self.listener else list(ok)

    def brokers(self) -> list[str]:
        if self.unreachable:
            raise self.unreachable
        return [f"{self.alias}:9092", f"{self.alias}-2:9092"]

    def cluster_id(self) -> str | None:
        return self.id or f"id-of-{self.alias}"

    def topics(self) -> Mapping[str, int]:
        return dict.fromkeys(self.names, 6)

    def groups(self) -> frozenset[str]:
        return frozenset(self.group_names)

    def answers(self, needed: Collection[RequiredAccess]) -> dict[RequiredAccess, bool]:
        known = (
            each
            for each in needed
            if self.reports_missing or each.kind != "topic" or each.name in self.names
        )
        return {each: each not in self.denied for each in known}

    def acls(self) -> list[AclRule]:
        if isinstance(self.rules, KafkaOperationError):
            raise self.rules
        return self.rules

    def clock_offset(self) -> tuple[float, float]:
        if isinstance(self.clock, KafkaOperationError):
            raise self.clock
        return self.clock


CONFIG = load_config(
    """
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu:
    bootstrap_servers: "eu:9092"
    security:
      protocol: SASL_SSL
      sasl: {mechanism: PLAIN, username: app, password: hunter2}
flows:
  - {flow: us->eu, topics: [orders]}
""",
    name="mm2slo.yaml",
)


def stored(connector: str, **settings: str) -> TailRecord:
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    value = json.dumps({"properties": properties}).encode()
    return TailRecord(0, 0, None, f"connector-{connector}".encode(), value, None)


OWN = {"mm2slo.watermarks.internal", "mm2slo.arrivals.internal"}
RUNNING = [stored("MirrorSourceConnector", topics="orders")]


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeCluster]:
    """Two clusters where all is well but for the clock; tests change them."""
    found = {
        "eu": FakeCluster("eu", {"us.orders", *OWN, *INTERNAL}),
        "us": FakeCluster("us", {"orders", "heartbeats", "mm2-offset-syncs.eu.internal"}),
    }
    monkeypatch.setattr(check_connect, "read_config", lambda _source: CONFIG)
    monkeypatch.setattr(check_connect, "ClusterInspection", lambda alias, _: found[alias])
    monkeypatch.setattr(flow_topic_reader, "read_to_end", lambda _client, _topic: RUNNING)
    monkeypatch.setenv("COLUMNS", "80")
    return found


def test_timeline_size_of_the_flows_partitions_is_estimated(
    clusters: dict[str, FakeCluster],
) -> None:
    (found,) = (each for each in diagnose(clusters) if each.check == "timeline-size")
    assert found.finding.startswith(
        "12 moving partitions write about 0.0149 GB a day to mm2slo.watermarks.internal"
    )
    assert "GB a day to mm2slo.arrivals.internal" in found.finding


def test_two_aliases_of_one_cluster_are_to_fix(clusters: dict[str, FakeCluster]) -> None:
    clusters["us"].id = clusters["eu"].id = "x1"
    assert to_fix(diagnose(clusters))[0] == (
        "us->eu",
        "one-cluster",
        "us and eu are one cluster, with the id x1",
        "use one alias for each cluster; MirrorMaker 2 copies its copies without end",
    )


def diagnose(
    clusters: Mapping[str, FakeCluster], *, allow_writes: bool = True, **counterparts: str
) -> list[CheckResult]:
    found: Any = clusters
    return list(check_connect.diagnose(CONFIG, found, counterparts, allow_writes=allow_writes))


def to_fix(results: Iterable[CheckResult]) -> list[tuple[str, str, str, str]]:
    return [(r.where, r.check, r.finding, r.remedy) for r in results if r.state == "fix"]


def run(*, as_json: bool = False, principals: Collection[str] = ()) -> int:
    try:
        check_connect.run(
            ConfigSource(), as_json=as_json, principals=[*principals], allow_writes=True
        )
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def test_table_has_80_columns_and_a_remedy_per_problem(
    clusters: dict[str, FakeCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    clusters["us"].denied = [RequiredAccess("topic", "orders", "Read")]
    clusters["us"].clock = (2.5, 0.25)
    writer = AclRule("User:writer", "topic", AclPattern("orders"), "Write")
    clusters["us"].rules = clusters["eu"].rules = [writer]
    assert run() == 1
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert lines[1:13] == [
        " Where    State   Finding and remedy",
        " " + "─" * 78,
        " eu       ok      eu:9092 answers",
        " eu       ok      2 brokers accept PLAIN",
        " eu       ok      eu-2:9092 answers",
        " eu       ok      clock is +0.000 s from this host's (uncertainty 0.010 s)",
        " us       ok      us:9092 answers",
        " us       ok      2 brokers accept PLAINTEXT",
        " us       ok      us-2:9092 answers",
        " us       fix     clock is +2.500 s from this host's (uncertainty 0.250 s)",
        "                  -> synchronise the clocks (NTP)",
        " us->eu   ok      exporter: Describe on topic heartbeats, orders of us",
    ]
    assert " us->eu   fix     audit is denied Read on topic orders: the topic is not" in lines
    assert lines[-1] == "3 to fix, 0 unknown, 39 ok"
    # It holds both heartbeats and canaries.
    assert [line for line in lines if "us.heartbeats of eu" in line] == [
        " us->eu   ok      exporter: Read on topic us.heartbeats of eu"
    ]


def test_json_has_all_results_and_no_secret(
    clusters: dict[str, FakeCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    clusters["us"].rules, clusters["eu"].rules = READER, []
    assert run(as_json=True) == 0
    printed = capsys.readouterr().out
    assert "hunter2" not in printed
    found = json.loads(printed)
    assert found["counts"] == {"ok": 42, "unknown": 1}
    assert found["results"][0] == {
        "where": "eu",
        "check": "connection",
        "state": "ok",
        "finding": "eu:9092 answers",
        "remedy": "",
    }


def test_unreachable_cluster_leaves_its_flows_unknown(clusters: dict[str, FakeCluster]) -> None:
    clusters["us"].listener = CheckResult("us", "name-resolution", "fix", "unknown", "correct it")
    clusters["eu"].unreachable = problem(ErrorKind.AUTHENTICATION, "invalid credentials")
    results = diagnose(clusters)
    assert to_fix(results) == [
        (
            "eu",
            "authentication",
            "connecting failed: invalid credentials",
            "check the mechanism, user name and password of this cluster",
        ),
        ("us", "name-resolution", "unknown", "correct it"),
    ]
    assert [(r.where, r.state) for r in results][-1] == ("us->eu", "unknown")


def test_missing_internal_topics_are_named_once(clusters: dict[str, FakeCluster]) -> None:
    clusters["eu"].names = {"us.orders", "us.heartbeats"}
    assert to_fix(diagnose(clusters)) == [
        (
            "us->eu",
            "internal-topics",
            "missing topics of MirrorMaker 2: mm2-configs.us.internal on eu, "
            "mm2-offsets.us.internal on eu, mm2-status.us.internal on eu, "
            "us.checkpoints.internal on eu",
            "start MirrorMaker 2; on Kafka Connect, set the names in flows[].connect",
        )
    ]


def test_permissions_on_topics_that_do_not_exist_yet_are_one_result(
    clusters: dict[str, FakeCluster],
) -> None:
    for cluster in clusters.values():
        cluster.names, cluster.reports_missing = {"orders"}, False
    unknown = [r for r in diagnose(clusters) if (r.check, r.state) == ("permission", "unknown")]
    assert [(r.finding, r.remedy) for r in unknown] == [
        (
            "not known before these topics exist: access to heartbeats, "
            "mm2-configs.eu.internal, mm2-configs.us.internal and 9 more",
            "check again when MirrorMaker 2 and the exporter run",
        )
    ]


@pytest.mark.parametrize(
    ("alias", "topic", "without"),
    [
        (
            "us",
            "heartbeats",
            "availability by MirrorMaker 2's heartbeats; set canary: {carrier: off}",
        ),
        (
            "eu",
            "mm2slo.watermarks.internal",
            "after a restart, lag in seconds comes from record timestamps",
        ),
    ],
)
def test_create_is_needed_only_for_missing_topics(
    clusters: dict[str, FakeCluster], alias: str, topic: str, without: str
) -> None:
    clusters[alias].denied = [RequiredAccess("topic", topic, "Create")]
    assert to_fix(diagnose(clusters)) == []
    clusters[alias].names = {*clusters[alias].names} - {topic}
    assert [finding for _, _, finding, _ in to_fix(diagnose(clusters))] == [
        f"exporter is denied Create on topic {topic}: {without}"
    ]


def test_target_groups_are_described_for_their_readiness(clusters: dict[str, FakeCluster]) -> None:
    clusters["eu"].denied = [RequiredAccess("group", "shop", "Describe")]
    found: Any = clusters
    results = check_connect.diagnose(CONFIG, found, {}, allow_writes=True)
    denied = [text for _, check, text, _ in to_fix(results) if check == "permission"]
    finding = "groups with a checkpoint are not ready; no lag on the target"
    assert denied == [f"exporter is denied Describe on group shop: {finding}"]


def test_settings_that_differ_are_reported(
    clusters: dict[str, FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = [
        stored("MirrorSourceConnector", topics="orders,pay"),
        stored("MirrorCheckpointConnector", sync_group_offsets_enabled="true"),
        TailRecord(0, 1, None, b"connector-other", b"no JSON", None),
    ]
    monkeypatch.setattr(flow_topic_reader, "read_to_end", lambda _client, _topic: running)
    results = diagnose(clusters)
    assert to_fix(results) == [
        (
            "us->eu",
            "settings",
            "topics is 'orders', but MirrorMaker 2 runs with 'orders, pay'",
            "set topics of the flow, or change MirrorMaker 2",
        )
    ]
    groups = [r.finding for r in results if "Describe on group" in r.finding]
    assert groups == [f"exporter: Describe on group shop of {alias}" for alias in ("us", "eu")]


def test_settings_are_unknown_without_the_connector(
    clusters: dict[str, FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = TailRecord(0, 1, None, b"connector-MirrorSourceConnector", None, None)
    everything = [*RUNNING, deleted]
    monkeypatch.setattr(flow_topic_reader, "read_to_end", lambda _client, _topic: everything)
    assert [r.state for r in diagnose(clusters) if r.check == "settings"] == ["unknown"]


READER = [
    AclRule("User:app", "topic", AclPattern("orders"), "Read"),
    AclRule("User:app", "group", AclPattern("shop"), "Read"),
]
COPY_READER = [
    AclRule("User:app-dr", "topic", AclPattern("us.orders"), "Read"),
    AclRule("User:app-dr", "group", AclPattern("shop"), "Read"),
]


def test_readers_need_the_copy_and_the_group_on_the_target(
    clusters: dict[str, FakeCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    clusters["us"].rules, clusters["eu"].rules = READER, COPY_READER
    assert to_fix(diagnose(clusters)) == [
        (
            "us->eu",
            "readers",
            "after a failover, User:app may not Read topic us.orders, group shop",
            "grant it on eu, or name another user: --principal User:app=...",
        )
    ]
    assert run(principals=["app=app-dr"]) == 0
    assert "User:app-dr may read on eu what User:app may read on us" in capsys.readouterr().out


def test_readers_are_unknown_without_acls_of_both_clusters(
    clusters: dict[str, FakeCluster],
) -> None:
    def readers() -> list[tuple[str, str, str]]:
        results = diagnose(clusters)
        return [(r.state, r.finding, r.remedy) for r in results if r.check == "readers"]

    clusters["us"].rules, clusters["eu"].rules = READER, []
    without = "readers not compared: without ACLs on both clusters, who may read is not known"
    assert readers() == [("unknown", without, "")]
    clusters["eu"].rules = problem(ErrorKind.AUTHORIZATION, "denied")
    remedy = "connecting on us failed: denied"
    assert readers() == [("unknown", "readers not compared", remedy)]


def test_clock_is_unknown_unless_a_write_is_allowed_and_succeeds(
    clusters: dict[str, FakeCluster],
) -> None:
    clusters["us"].clock = problem(ErrorKind.AUTHORIZATION, "denied")

    def clocks(*, allow_writes: bool) -> list[str]:
        results = diagnose(clusters, allow_writes=allow_writes)
        return [r.state for r in results if r.check == "clock"]

    assert clocks(allow_writes=False) == ["unknown", "unknown"]
    assert clocks(allow_writes=True) == ["ok", "unknown"]


@pytest.mark.parametrize("text", ["app", "=app", "app="])
def test_invalid_principal_is_a_user_error(clusters: dict[str, FakeCluster], text: str) -> None:
    del clusters
    with pytest.raises(UserError, match="is not SOURCE=TARGET; expected app=app-dr"):
        run(principals=[text])


def test_command_reports_unreachable_clusters_and_exits_1(tmp_path: Path) -> None:
    path = tmp_path / "mm2slo.yaml"
    clusters = {alias: {"bootstrap_servers": "127.0.0.1:1"} for alias in ("us", "eu")}
    path.write_text(json.dumps({"clusters": clusters, "flows": [{"flow": "us->eu"}]}), "utf-8")
    program = Path(sys.executable).parent / "mm2slo"
    options = ("--connect", "--allow-writes", "--principal", "app=app-dr")
    done = subprocess.run(
        [program, "check", "--config", path, *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1] == "2 to fix, 1 unknown, 0 ok"
