"""Aliases with the same settings are one cluster."""

from collections.abc import Iterable
from typing import Any, cast

import pytest

from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.topology import Flow
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.readers.cluster_reader import WatchScope
from mm2slo_exporter.service import cluster_handles
from mm2slo_exporter.service.cluster_handles import ClusterHandles

CONFIG = """
clusters:
  us: {bootstrap_servers: "us:1"}
  shop: {bootstrap_servers: "us:1"}
  audit: {bootstrap_servers: "us:1", client: {client.rack: a}}
  eu: {bootstrap_servers: "eu:1"}
flows: [{flow: us->eu}]
"""


class Part:
    """A client, reader or writer that remembers what happened."""

    def __init__(self, log: list[str], kind: str, alias: str) -> None:
        self.alias = alias
        self._log, self._kind = log, kind

    def _note(self, what: str) -> None:
        self._log.append(f"{what} {self._kind} {self.alias}")

    def start(self) -> None:
        self._note("start")

    def stop(self) -> None:
        self._note("stop")

    def close(self) -> None:
        self._note("close")

    def request_totals(self) -> dict[str, int]:
        return {"Fetch": 1}

    def serve(self, flows: Iterable[Flow]) -> None:
        if labels := " ".join(flow.label for flow in flows):
            self._log.append(f"serve {self.alias}: {labels}")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []

    def part(kind: str) -> Any:
        def make(client: Any, *_: object, **__: object) -> Part:
            return Part(made, kind, client if isinstance(client, str) else client.alias)

        return make

    for name in (
        "ClusterClient",
        "ClusterReader",
        "InternalTopicsReader",
        "ClusterWriter",
        "ArrivalPoller",
    ):
        monkeypatch.setattr(cluster_handles, name, part(name))
    return made


@pytest.fixture
def config() -> Config:
    return load_config(CONFIG)


@pytest.fixture
def health() -> CollectionHealth:
    return CollectionHealth()


@pytest.fixture
def handles(config: Config, health: CollectionHealth, log: list[str]) -> ClusterHandles:
    del log
    made = ClusterHandles(config.exporter, cast("WatchScope", None), health)
    made.open(config.clusters)
    return made


def test_aliases_with_same_settings_share_client_and_threads(
    handles: ClusterHandles, log: list[str]
) -> None:
    assert handles["us"] is handles["shop"]
    assert handles["us"] is not handles["audit"]
    assert log == ["start ClusterReader us", "start ClusterReader audit", "start ClusterReader eu"]
    assert handles.sharing(["shop", "eu"]) == {"us", "shop", "eu"}
    assert handles.request_totals() == {
        ("us", "Fetch"): 1,
        ("audit", "Fetch"): 1,
        ("eu", "Fetch"): 1,
    }


def test_writer_serves_flows_to_all_aliases_of_its_cluster(
    handles: ClusterHandles, log: list[str]
) -> None:
    log.clear()
    handles.serve([Flow("eu", "us"), Flow("eu", "shop"), Flow("eu", "audit"), Flow("us", "eu")])
    assert log == ["serve us: eu->us eu->shop", "serve audit: eu->audit", "serve eu: us->eu"]


def test_shared_cluster_is_closed_once(handles: ClusterHandles, log: list[str]) -> None:
    log.clear()
    handles.close(handles.sharing(["us"]))
    assert sorted(log) == [
        "close ClusterClient us",
        "stop ArrivalPoller us",
        "stop ClusterReader us",
        "stop ClusterWriter us",
        "stop InternalTopicsReader us",
    ]
    assert "shop" not in handles
    assert handles.request_totals()["us", "Fetch"] == 1


def test_failures_and_successes_are_those_of_all_aliases(
    handles: ClusterHandles, health: CollectionHealth
) -> None:
    del handles
    health.record_failure("us", CollectionStage.TOPICS, "timeout", "no answer")
    assert health.failing_stages("shop") == {CollectionStage.TOPICS: "timeout"}
    assert health.failing_stages("audit") == {}
    health.record_success("us", CollectionStage.TOPICS, 7.0)
    assert health.failing_stages("shop") == {}
    report = health.report()
    assert report.errors["shop", CollectionStage.TOPICS, "timeout"] == 1
    assert report.last_success == {
        ("us", CollectionStage.TOPICS): 7.0,
        ("shop", CollectionStage.TOPICS): 7.0,
    }


def test_alias_with_changed_settings_keeps_its_counts_and_counts_alone(
    handles: ClusterHandles, health: CollectionHealth, config: Config
) -> None:
    health.record_failure("us", CollectionStage.TOPICS, "timeout", "no answer")
    handles.close(handles.sharing(["shop"]))
    handles.open({**config.clusters, "shop": config.clusters["audit"]})
    health.record_failure("us", CollectionStage.TOPICS, "timeout", "no answer")
    errors = health.report().errors
    assert errors["us", CollectionStage.TOPICS, "timeout"] == 2
    assert errors["shop", CollectionStage.TOPICS, "timeout"] == 1


@pytest.mark.parametrize(
    ("exporter", "reads"),
    [
        ("{}", True),
        ("{read_only: true}", False),
        ("{timeline: {enabled: false}}", False),
        ("{timeline: {arrivals: false}}", False),
    ],
)
def test_arrivals_are_read_only_if_they_may_be_written(
    log: list[str], health: CollectionHealth, exporter: str, *, reads: bool
) -> None:
    del log
    config = load_config(f"{CONFIG}exporter: {exporter}\n")
    handles = ClusterHandles(config.exporter, cast("WatchScope", None), health)
    handles.open(config.clusters)
    assert (handles["eu"].arrivals is not None) is reads
