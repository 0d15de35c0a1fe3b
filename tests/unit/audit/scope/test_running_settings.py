"""Settings of running connectors that an audit uses, and how it names differences."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from mm2slo_audit.scope import flow_topic_reader
from mm2slo_audit.scope.flow_topic_reader import use_running_settings
from mm2slo_core.config.exporter_settings import Isolation
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import TailRecord

CONFIGS, OFFSETS = "mm2-configs.us.internal", "mm2-offsets.us.internal"
SOURCE = "MirrorSourceConnector"
FENCING = TailRecord(0, 9, None, f"tasks-fencing-{SOURCE}".encode(), b'{"tasks":1}', None)
COMMIT = TailRecord(
    *(0, 3, 1_000),
    json.dumps([SOURCE, {"cluster": "us", "topic": "t", "partition": 0}]).encode(),
    b'{"offset": 5}',
    None,
)


def connector(**settings: str) -> TailRecord:
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    value = json.dumps({"properties": properties}).encode()
    return TailRecord(0, 0, None, f"connector-{SOURCE}".encode(), value, None)


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[TailRecord]]:
    """The records by topic; the offsets topic ends at offset 5, which is read last."""
    found: dict[str, list[TailRecord]] = {CONFIGS: [], OFFSETS: []}

    def read(
        _client: object,
        topic: str,
        *,
        is_enough: Callable[[Mapping[int, int]], bool] = lambda _positions: True,
    ) -> Iterator[TailRecord]:
        yield from found[topic]
        # The marker after the newest commit is read later than the commit.
        assert any(is_enough({0: position}) for position in (4, 5)) or topic == OFFSETS

    monkeypatch.setattr(flow_topic_reader, "read_to_end", read)
    return found


def used(**configured: object) -> tuple[FlowConfig, tuple[str, ...]]:
    flow = FlowConfig.model_validate({"flow": "us->eu", **configured})
    return use_running_settings(flow, cast("ClusterClient", None))


def test_isolation_of_the_running_connector_is_used_and_named(
    topics: dict[str, list[TailRecord]],
) -> None:
    topics[CONFIGS] = [connector(consumer_isolation_level="read_committed")]
    flow, notes = used()
    assert flow.isolation is Isolation.READ_COMMITTED
    assert notes == (
        "us->eu: isolation is configured as 'read_uncommitted', but MirrorMaker 2 runs with"
        " 'read_committed'; the audit used 'read_committed'",
    )
    flow, notes = used(settings="configured")
    assert flow.isolation is Isolation.READ_UNCOMMITTED
    assert [note.rpartition("; ")[2] for note in notes] == ["the audit used 'read_uncommitted'"]
    assert used(isolation="read_committed")[1] == ()


@pytest.mark.parametrize(
    ("committed", "exactly_once"), [(COMMIT, True), (COMMIT._replace(offset=4), False)]
)
def test_exactly_once_requires_fenced_tasks_and_markers_after_commits(
    topics: dict[str, list[TailRecord]], committed: TailRecord, exactly_once: bool
) -> None:
    topics[OFFSETS] = [committed]
    topics[CONFIGS] = [connector()]
    assert used()[0].exactly_once is False
    topics[CONFIGS] = [connector(), FENCING]
    flow, notes = used()
    assert flow.exactly_once is exactly_once
    assert len(notes) == exactly_once


def test_policy_and_transforms_are_named_only(topics: dict[str, list[TailRecord]]) -> None:
    separator: dict[str, Any] = {"replication_policy_separator": "_", "transforms": "drop, mask"}
    topics[CONFIGS] = [connector(**separator)]
    flow, notes = used()
    assert flow.policy.separator == "."
    assert [note.partition(":")[2].strip()[:50] for note in notes] == [
        "policy.separator is configured as '.', but MirrorM",
        "MirrorMaker 2 runs with the transforms drop, mask:",
    ]
    assert notes[0].endswith("the audit used '.'")


def test_unreadable_settings_leave_the_configured_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="eu", operation=f"reading {CONFIGS}", detail="denied"
    )

    def read(*_arguments: object, **_options: object) -> Iterator[TailRecord]:
        raise denied

    monkeypatch.setattr(flow_topic_reader, "read_to_end", read)
    flow, notes = used(exactly_once=True)
    assert flow.exactly_once is True
    assert notes == (f"us->eu: the configured settings were used, because {denied}",)
