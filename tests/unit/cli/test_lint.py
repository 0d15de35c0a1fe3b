"""`mm2slo lint`: its text at 80 columns, its JSON, its exit codes, and `--connect`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from mm2slo_cli import docs
from mm2slo_cli import lint as lint_command
from mm2slo_core.mm2_config.lint_check_list import CHECKS
from mm2slo_kafka.cluster_metadata import ConfigEntry, ConfigReading, TopicListing
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    Output = tuple[int, str, str]
    Run = Callable[..., Output]

CLEAN: Final = """\
clusters = us, eu
us.bootstrap.servers = us-1:9092
eu.bootstrap.servers = eu-1:9092
us->eu.enabled = true
us->eu.topics = orders.*
tasks.max = 4
sync.group.offsets.enabled = true
sync.topic.acls.enabled = false
dedicated.mode.enable.internal.rest = true
"""
WARNED: Final = CLEAN + "us->eu.offset.lag.max = 50000\n"
WRONG: Final = WARNED + "eu.ssl.key.password =\nus->eu.topics.exclude = a\\u001b[31m{2,3}\n"
OUTPUT: Final = """\
mm2.properties:10: warning: us->eu.offset.lag.max = 50000 [large-offset-lag]
  why: each partition may redeliver this many records after a failover
  do:  lower it to what consumers can handle; the default is 100
1 findings: 0 error, 1 warning, 0 info; by the rules of Kafka 4.4
"""

RULES = "; by the rules of Kafka 4.4"


@pytest.fixture
def run(mm2slo: Callable[[str], Output], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `mm2slo lint` on a file with a text; exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def lint(text: str, options: str = "") -> Output:
        (tmp_path / "mm2.properties").write_text(text, encoding="utf-8")
        return mm2slo(f"lint mm2.properties {options}")

    return lint


def test_lint_clean_file_exits_with_0(run: Run) -> None:
    counts = "0 findings: 0 error, 0 warning, 0 info"
    assert run(CLEAN) == (0, f"{counts}{RULES}\n", "")
    assert run(CLEAN, "--kafka-version 4.1") == (0, f"{counts}\n", "")


def test_lint_information_exits_with_0(run: Run) -> None:
    code, out, _ = run(CLEAN.replace("orders.*", ".*"))
    assert (code, out.splitlines()[-1]) == (0, f"1 findings: 0 error, 0 warning, 1 info{RULES}")


def test_lint_warning_exits_with_1_and_shows_what_why_and_what_to_do(run: Run) -> None:
    assert run(WARNED) == (1, OUTPUT, "")


def test_lint_findings_with_the_same_advice_are_one_block(run: Run) -> None:
    keys = ("offset-syncs", "checkpoints", "heartbeats")
    factors = "".join(f"{each}.topic.replication.factor = 1\n" for each in keys)
    _, out, _ = run(CLEAN + factors)
    lines = out.splitlines()
    assert sum("[single-copy]" in each for each in lines) == 3
    assert sum(each.startswith("  why: the failure of one broker") for each in lines) == 1


def test_lint_error_exits_with_2_in_80_printable_columns(run: Run) -> None:
    code, out, _ = run(WRONG)
    assert code == 2
    assert max(map(len, out.splitlines())) <= 80
    assert "[empty-password]" in out
    assert "[comma-in-pattern]" in out
    assert all(line.isprintable() for line in out.splitlines())


def test_lint_json_has_file_line_and_texts_of_each_finding(run: Run) -> None:
    code, out, _ = run(WARNED, "--json")
    assert code == 1
    assert json.loads(out) == {
        "findings": [
            {
                "file": "mm2.properties",
                "line": 10,
                "check": "large-offset-lag",
                "severity": "warning",
                "what": "us->eu.offset.lag.max = 50000",
                "why": CHECKS["large-offset-lag"].why,
                "action": CHECKS["large-offset-lag"].action,
            }
        ]
    }


def test_lint_kafka_version_decides_which_keys_exist(run: Run) -> None:
    text = CLEAN + "us->eu.metric.names.formats = new\n"
    assert run(text, "--kafka-version 4.1")[0] == 1
    assert run(text)[0] == run(text, "--kafka-version 4.3.1")[0] == 0


@pytest.mark.parametrize("topics", ["orders,,payments", "orders,", "orders,payments,orders"])
def test_lint_blank_and_repeated_items_of_lists_are_refused_since_kafka_42(
    run: Run, topics: str
) -> None:
    text = CLEAN.replace("orders.*", topics)
    assert "[refused-value]" not in run(text, "--kafka-version 4.1")[1]
    code, out, _ = run(text, "--kafka-version 4.2")
    assert (code, "(Kafka 4.2 and later) [refused-value]" in " ".join(out.split())) == (2, True)


def test_lint_reads_secrets_and_paths_of_mirrormaker(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    text = CLEAN + "us.security.protocol = SSL\nus.ssl.truststore.location = /etc/mm2/ca.pem\n"
    assert "cannot read '/etc/mm2/ca.pem'" in " ".join(run(text)[1].split())
    (tmp_path / "tls" / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n", "ascii")
    code, out, _ = run(text, "--path /etc/mm2=tls")
    assert (code, "[store-without-certificate]" in out) == (2, True)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a = b\n", "", "is not a configuration of MirrorMaker 2"),
        (CLEAN, "--kafka-version latest", "--kafka-version 'latest' is not a known version"),
        (CLEAN, "--kafka-version 9.9", "'9.9' is not a known version; expected one from Kafka 2.4"),
        (CLEAN, "--kafka-version 3.10", "'3.10' is not a known version"),
        (CLEAN, "--path x", "--path 'x' is not FROM=TO"),
    ],
)
def test_lint_wrong_use_exits_with_2(text: str, options: str, message: str, run: Run) -> None:
    code, out, err = run(text, options)
    assert (code, out) == (2, "")
    assert message in err


class FakeClient:
    """A cluster with one broker, whose topic on the source keeps records for longer."""

    def __init__(self, alias: str, properties: Mapping[str, str]) -> None:
        assert properties["bootstrap.servers"] == f"{alias}-1:9092"
        self.alias = alias

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *_exception: object) -> None: ...

    def topics(self) -> TopicListing:
        return TopicListing(self.alias, 1, {self._topic: 2}, {}, {})

    def topic_configs(self, topics: Iterable[str], *, defaults_of: object) -> ConfigReading:
        assert "retention.ms" in str(defaults_of)
        kept = {"us": "2000", "eu": "1000"}[self.alias]
        entries = {"retention.ms": ConfigEntry(kept, False, ""), "x": ConfigEntry(None, True, "")}
        return ConfigReading(dict.fromkeys(topics, entries), {})

    @property
    def _topic(self) -> str:
        return {"us": "orders", "eu": "us.orders"}[self.alias]


def test_lint_connect_compares_with_both_clusters(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lint_command, "ClusterClient", FakeClient)
    code, out, err = run(CLEAN, "--connect --json")
    assert (code, err) == (2, "")
    assert {(each["check"], each["what"]) for each in json.loads(out)["findings"]} == {
        ("idle-tasks", "tasks.max = 4"),
        ("lower-target-limit", "us.orders: retention.ms = 1000, on the source 2000"),
        *(
            ("too-few-brokers", f"{topic}replication.factor = {factor}, but {where} has 1 brokers")
            for topic, factor, where in (
                ("", 2, "eu"),
                ("offset-syncs.topic.", 3, "us"),
                ("checkpoints.topic.", 3, "eu"),
                ("heartbeats.topic.", 3, "eu"),
            )
        ),
    }


def test_lint_connect_unreachable_cluster_exits_with_2(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(alias: str, _properties: object) -> FakeClient:
        kind = ErrorKind.UNREACHABLE
        raise KafkaOperationError(kind, cluster=alias, operation="listing topics", detail="down")

    monkeypatch.setattr(lint_command, "ClusterClient", refuse)
    code, out, err = run(CLEAN, "--connect")
    assert (code, out) == (2, "")
    assert err.startswith("listing topics on cluster us failed (unreachable): down; check")


def test_lint_connect_incomplete_connection_exits_with_2(run: Run) -> None:
    text = CLEAN + "us.security.protocol = SASL_SSL\nus.sasl.mechanism = GSSAPI\n"
    code, out, err = run(text, "--connect")
    assert (code, out) == (2, "")
    assert err.startswith(
        "mm2.properties: 1 problem\nmm2.properties:11: mm2slo cannot use sasl.mechanism GSSAPI; "
    )


def test_lint_page_lists_each_check_once() -> None:
    rows = [line for line in docs.render_lint().splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(CHECKS)
    assert {row.replace(r"\|", "").count("|") for row in rows} == {6}
