"""Configured flows against the connectors that run."""

from __future__ import annotations

from typing import Any

import pytest

from mm2slo_core.config import FlowConfig
from mm2slo_core.mm2_config.observed_settings import setting_differences
from mm2slo_core.records import ConnectorConfig

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
