"""`mm2slo check --connect --cannot-read` with clusters that return prepared answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from mm2slo_cli import check_isolation
from mm2slo_cli.main import app
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_metadata import TopicListing
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

CONFIG = """
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
"""
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
CLIENT = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": f'{SCRAM} username="tenant-a" password="hunter2";',
}


def failed(kind: ErrorKind) -> KafkaOperationError:
    return KafkaOperationError(kind, cluster="us", operation="listing topics", detail=f"no {kind}")


@dataclass
class Clusters:
    """Replaces `ClusterClient`: by bootstrap servers, topics and what the tenant's reads return."""

    topics: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"us:9092": ("a.x", "b.x", "b.y"), "eu:9092": ("b.x",)}
    )
    failures: dict[str, ErrorKind] = field(default_factory=dict)
    away: dict[tuple[str, str | None], ErrorKind] = field(default_factory=dict)
    """Errors by servers and user; the configured user has no name."""

    def __call__(self, _alias: str, properties: Mapping[str, str]) -> Any:
        return Client(self, properties["bootstrap.servers"], properties.get("sasl.username"))


@dataclass
class Client:
    clusters: Clusters
    servers: str
    user: str | None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass

    def topics(self) -> TopicListing:
        if kind := self.clusters.away.get((self.servers, self.user)):
            raise failed(kind)
        names = self.clusters.topics[self.servers] if self.user is None else ()
        cluster = self.servers.replace("external.", "")
        return TopicListing(cluster, 1, dict.fromkeys(names, 1), {})

    def read_failures(self, topics: Iterable[str]) -> dict[str, ErrorKind]:
        assert self.user == "tenant-a"
        failures = self.clusters.failures
        return {each: failures[each] for each in topics if each in failures}


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    found = Clusters(failures=dict.fromkeys(("b.x", "b.y"), ErrorKind.AUTHORIZATION))
    found.topics = {**found.topics, "external.eu:9092": ("b.x",)}
    monkeypatch.setattr(check_isolation, "ClusterClient", found)
    return found


@pytest.fixture
def check(tmp_path: Path) -> Any:
    def run(pattern: str, *options: str, **client: str) -> tuple[int, list[tuple[str, str, str]]]:
        (tmp_path / "mm2slo.yaml").write_text(CONFIG)
        file = tmp_path / "tenant-a.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in {**CLIENT, **client}.items()))
        command = ["check", "--config", str(tmp_path / "mm2slo.yaml")]
        command += ["--connect", "--as", str(file)]
        result = CliRunner().invoke(
            app, [*command, "--cannot-read", pattern, "--json", *options], catch_exceptions=False
        )
        assert "hunter2" not in result.output
        found = json.loads(result.output)["results"]
        assert {each["check"] for each in found} == {"cannot-read"}
        return result.exit_code, [(r["where"], r["state"], r["finding"]) for r in found]

    return run


def test_refusal_of_every_topic_passes(clusters: Clusters, check: Any) -> None:
    code, found = check("b[.].*")
    assert clusters.failures
    assert code == 0
    assert found == [
        ("us", "ok", "tenant-a.properties is refused Read on 2 topics that match 'b[.].*'"),
        ("eu", "ok", "tenant-a.properties is refused Read on 1 topic that matches 'b[.].*'"),
    ]


def test_readable_topic_is_named_and_fails_beside_unknown_ones(
    clusters: Clusters, check: Any
) -> None:
    clusters.failures = {"b.x": ErrorKind.TIMEOUT}
    code, found = check("b[.].*", "--cluster", "us")
    assert code == 1
    finding = "tenant-a.properties can read 1 of 2 topics that match 'b[.].*': b.y"
    assert found == [("us", "fix", finding)]


@pytest.mark.parametrize("kind", [ErrorKind.TIMEOUT, ErrorKind.UNKNOWN_TOPIC, ErrorKind.OTHER])
def test_topic_without_an_answer_is_unknown(
    clusters: Clusters, check: Any, kind: ErrorKind
) -> None:
    clusters.failures["b.y"] = kind
    code, found = check("b[.].*", "--cluster", "us")
    assert code == 2
    finding = (
        f"no answer ({kind}) to tenant-a.properties for 1 of 2 topics that match 'b[.].*': b.y"
    )
    assert found == [("us", "unknown", finding)]


def test_pattern_without_a_topic_is_unknown(clusters: Clusters, check: Any) -> None:
    assert clusters
    code, found = check("b", "--cluster", "us")  # matches whole names only
    assert code == 2
    finding = "not known whether tenant-a.properties is refused: no topic matches 'b'"
    assert found == [("us", "unknown", finding)]


@pytest.mark.parametrize("kind", [ErrorKind.AUTHENTICATION, ErrorKind.UNREACHABLE])
@pytest.mark.parametrize("user", ["tenant-a", None])
def test_cluster_that_refuses_a_login_or_is_away_is_unknown(
    clusters: Clusters, check: Any, kind: ErrorKind, user: str | None
) -> None:
    clusters.away["us:9092", user] = kind
    code, found = check("b[.].*")
    assert code == 2
    who = "the configured user" if user is None else "tenant-a.properties"
    finding = f"{who}: listing topics failed: no {kind}"
    assert [each for each in found if each[1] != "ok"] == [("us", "unknown", finding)]


def test_servers_in_the_file_select_their_cluster(clusters: Clusters, check: Any) -> None:
    clusters.away["us:9092", None] = ErrorKind.UNREACHABLE
    code, found = check("b[.].*", **{"bootstrap.servers": "external.eu:9092"})
    assert code == 0
    assert [where for where, _, _ in found] == ["eu"]


def test_servers_of_no_configured_cluster_are_unknown(clusters: Clusters, check: Any) -> None:
    assert clusters
    code, found = check("b[.].*", "--cluster", "us", **{"bootstrap.servers": "eu:9092"})
    assert code == 2
    finding = "bootstrap.servers of tenant-a.properties is none of the clusters us"
    assert found == [("tenant-a.properties", "unknown", finding)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--as", "tenant-a.properties"], "--cannot-read REGEX are used together"),
        (["--as", "missing", "--cannot-read", "b"], "cannot read 'missing'"),
        (["--as", "bad", "--cannot-read", "b"], "unknown security.protocol NONE"),
        (["--as", "bad", "--cannot-read", "b["], "--cannot-read: invalid regular expression 'b['"),
        (["--as", "bad", "--cannot-read", "b", "--cluster", "x"], "expected one of us, eu"),
    ],
)
def test_invalid_request_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mm2slo.yaml").write_text(CONFIG)
    (tmp_path / "bad").write_text("security.protocol=none\n")
    result = CliRunner().invoke(app, ["check", "--config", "mm2slo.yaml", "--connect", *options])
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)
