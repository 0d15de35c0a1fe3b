"""The groups that a cluster's reader reads for the running flows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from flow_observations import flow_config

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_exporter.observation import InternalsView
from mm2slo_exporter.service.flow_policies import FlowPolicies
from mm2slo_exporter.service.flow_watch_scope import FlowWatchScope

CHECKPOINTS: Any = {"app": {}, "gone": {}, "console-consumer-1": {}}


@pytest.mark.parametrize(
    ("alias", "synced", "groups"),
    [
        ("us", False, ["app", "gone", "new"]),
        ("eu", True, ["app", "gone", "new"]),
        ("eu", False, []),
        ("ap", True, []),
    ],
)
def test_groups_of_cluster_are_those_existing_and_with_a_checkpoint(
    alias: str, synced: bool, groups: list[str]
) -> None:
    internals = InternalsView(checkpoints=CHECKPOINTS, sync_group_offsets=synced)
    policies = FlowPolicies(flow_config(), CanaryCarrier.HEARTBEATS)
    runner: Any = SimpleNamespace(
        flow=policies.flow, policies=policies, internals=lambda: internals
    )
    existing = ["new", "app", "connect-mirror"]
    assert FlowWatchScope(lambda: [runner]).groups_of(alias, existing) == groups
