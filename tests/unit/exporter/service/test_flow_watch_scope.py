"""The groups that a cluster's reader reads for the running flows."""

from types import SimpleNamespace
from typing import Any

import pytest
from flow_observations import flow_config

from mm2slo_exporter.flow_observation import ClusterView, InternalsView
from mm2slo_exporter.flow_plan import FlowPolicies
from mm2slo_exporter.service.flow_manager import FlowWatchScope

CHECKPOINTS: Any = {"app": {}, "gone": {}, "console-consumer-1": {}}


@pytest.mark.parametrize(
    ("alias", "groups"),
    [("us", ["app", "gone", "new"]), ("eu", ["app", "gone", "new"]), ("ap", [])],
)
def test_groups_of_cluster_are_those_existing_and_with_a_checkpoint(
    alias: str, groups: list[str]
) -> None:
    internals = InternalsView(checkpoints=CHECKPOINTS)
    policies = FlowPolicies(flow_config())
    runner: Any = SimpleNamespace(
        flow=policies.flow, policies=policies, internals=lambda: internals
    )
    scope = FlowWatchScope(lambda: [runner])
    existing = ["new", "app", "connect-mirror"]
    assert scope.groups_of(alias, existing) == groups


def test_scope_of_a_cluster_covers_flows_of_all_its_aliases() -> None:
    policies = FlowPolicies(flow_config())
    topics = {"orders": 1, "us.orders": 1, "other.orders": 1}
    view = ClusterView(topics=topics)
    runner: Any = SimpleNamespace(
        flow=policies.flow,
        policies=policies,
        internals=InternalsView,
        clusters=lambda: (view, view),
    )

    def scope(*aliases: str) -> FlowWatchScope:
        return FlowWatchScope(lambda: [runner], lambda _alias: set(aliases))

    source = scope("shop", "us").topics_of("shop", topics)
    assert source == scope("us").topics_of("us", topics)
    assert source != []
    assert scope("shop").topics_of("shop", topics) == []
    assert "us.orders" in scope("shop", "eu").topics_of("shop", topics)
    assert scope("shop", "us").groups_of("shop", ["app"]) == ["app"]
