"""Configured flows against the connectors that run."""

from typing import Any

import pytest

from mm2slo_core.config.exporter_settings import Isolation
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.mm2_config.flow_settings import setting_differences
from mm2slo_core.mm2_config.running_settings import (
    RunningConnectors,
    observed_flow,
    overridden_settings,
)
from mm2slo_core.records.connect_records import ConnectorConfig

HEARTBEAT = "MirrorHeartbeatConnector"
SOURCE, CHECKPOINT = "MirrorSourceConnector", "MirrorCheckpointConnector"
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def differences(
    flow: dict[str, Any], source: dict[str, str], checkpoint: dict[str, str] | None = None
) -> list[tuple[str, str, str]]:
    running = {SOURCE: ConnectorConfig(SOURCE, source)}
    if checkpoint is not None:
        running[CHECKPOINT] = ConnectorConfig(CHECKPOINT, checkpoint)
    return list(setting_differences(FlowConfig.model_validate({"flow": "us->eu"} | flow), running))


@pytest.mark.parametrize(
    ("flow", "source", "expected"),
    [
        ({}, {}, []),
        ({"topics": ["orders", "pay"]}, {"topics": "orders, pay"}, []),
        ({"topics": ["orders"]}, {"topics": "orders, pay"}, [("topics", "orders", "orders, pay")]),
        ({}, {"topics": "orders"}, [("topics", ".*", "orders")]),
        (
            {},
            {"topics.exclude": "x"},
            [("topics_exclude", r"mm2.*\.internal, .*\.replica, __.*", "x")],
        ),
        ({"topics_exclude": ["x"]}, {}, []),
        ({}, {"replication.policy.class": IDENTITY}, [("policy.kind", "default", "identity")]),
        ({"policy": {"kind": "identity"}}, {"replication.policy.class": "com.acme.Policy"}, []),
        (
            {},
            {"replication.policy.separator": "_", "offset-syncs.topic.location": "target"},
            [("offset_syncs_location", "source", "target"), ("policy.separator", ".", "_")],
        ),
        (
            {"isolation": "read_committed"},
            {},
            [("isolation", "read_committed", "read_uncommitted")],
        ),
    ],
)
def test_differences_of_the_source_connector(
    flow: dict[str, Any], source: dict[str, str], expected: list[tuple[str, str, str]]
) -> None:
    assert differences(flow, source) == expected


def test_settings_of_absent_checkpoint_connector_are_not_compared() -> None:
    flow = {"groups": ["shop"], "checkpoint_interval": "5s"}
    assert differences(flow, {}) == []
    assert differences(flow, {}, {"groups": "shop"}) == [("checkpoint_interval", "5s", "1m")]
    assert differences(flow, {}, {"emit.checkpoints.interval.seconds": "5"}) == [
        ("groups", "shop", ".*")
    ]


def running(**settings: dict[str, str]) -> RunningConnectors:
    names = {"source": SOURCE, "checkpoint": CHECKPOINT, "heartbeat": HEARTBEAT}
    found = {names[each]: ConnectorConfig(names[each], settings[each]) for each in settings}
    return RunningConnectors(found, found.pop(HEARTBEAT, None))


def flow_config(**flow: Any) -> FlowConfig:
    return FlowConfig.model_validate({"flow": "us->eu"} | flow)


@pytest.mark.parametrize(
    ("flow", "connectors", "expected"),
    [
        (
            {},
            running(source={"source.consumer.isolation.level": "read_committed"}),
            [("isolation", "read_uncommitted", "read_committed")],
        ),
        (
            {"isolation": "read_committed"},
            running(source={"consumer.isolation.level": "read_uncommitted"}),
            [("isolation", "read_committed", "read_uncommitted")],
        ),
        (
            {"checkpoint_interval": "5s"},
            running(checkpoint={"emit.checkpoints.interval.seconds": "20"}),
            [("checkpoint_interval", "5s", "20s")],
        ),
        (
            {},
            running(source={"offset.lag.max": "1000"}),
            [("offset_lag_max", "100", "1000")],
        ),
        (
            {},
            running(
                heartbeat={
                    "emit.heartbeats.interval.seconds": "3",
                    "emit.heartbeats.enabled": "false",
                }
            ),
            [("heartbeat_interval", "1s", "3s"), ("emit_heartbeats", "true", "false")],
        ),
        ({}, RunningConnectors(transactional=True), [("exactly_once", "false", "true")]),
    ],
)
def test_settings_of_running_connectors_override_configured_ones(
    flow: dict[str, Any], connectors: RunningConnectors, expected: list[tuple[str, str, str]]
) -> None:
    configured = flow_config(**flow)
    assert list(overridden_settings(configured, observed_flow(configured, connectors))) == expected
    kept = flow_config(**flow, settings="configured")
    assert observed_flow(kept, connectors) is kept


@pytest.mark.parametrize(
    "connectors",
    [
        RunningConnectors(),
        running(source={}, checkpoint={}, heartbeat={}),
        running(
            source={"source.consumer.isolation.level": "${file:/etc/mm2:isolation}"},
            checkpoint={"emit.checkpoints.interval.seconds": "soon"},
        ),
        running(source={"emit.checkpoints.interval.seconds": "9"}),
    ],
)
def test_what_connectors_do_not_state_keeps_its_configured_value(
    connectors: RunningConnectors,
) -> None:
    configured = flow_config(
        isolation="read_committed",
        exactly_once=True,
        checkpoint_interval="5s",
        heartbeat_interval="2s",
        emit_heartbeats=False,
        offset_flush_interval="7s",
    )
    assert observed_flow(configured, connectors) == configured


def test_observed_isolation_is_that_of_the_configuration_model() -> None:
    stated = running(source={"source.consumer.isolation.level": "read_committed"})
    assert observed_flow(flow_config(), stated).isolation is Isolation.READ_COMMITTED
