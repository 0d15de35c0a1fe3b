"""ACLs of least privilege for exporter, audit and MirrorMaker 2."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from acl_grants import least_grants

from mm2slo_core.kafka_permissions import REQUIRED_PERMISSIONS, Component, FlowResources, Operation
from mm2slo_core.replication_policy import (
    DefaultPolicy,
    IdentityPolicy,
    OffsetSyncsLocation,
    ReplicationPolicy,
    internal_topics,
)
from mm2slo_core.topology import Flow

FLOW = Flow("us", "eu")
ALL_SETTINGS = frozenset(name for row in REQUIRED_PERMISSIONS for name in row.settings)


def resources(
    policy: ReplicationPolicy | None = None,
    location: OffsetSyncsLocation = OffsetSyncsLocation.SOURCE,
    **changed: Any,
) -> FlowResources:
    policy = policy or DefaultPolicy()
    made = FlowResources(
        FLOW, policy, ("orders",), ("shop-.*",), internal_topics(FLOW, policy, location)
    )
    return replace(made, **changed)


def lines(made: FlowResources, *components: Component) -> list[str]:
    """Grants as `cluster kind name operations`; a prefix ends in `*`."""
    grouped: dict[str, list[str]] = {}
    for cluster, kind, (name, prefixed), operation in least_grants(made, *components):
        grouped.setdefault(f"{cluster} {kind} {name}{'*' * prefixed}", []).append(operation)
    return [f"{resource} {'+'.join(operations)}" for resource, operations in grouped.items()]


def test_exporter_reads_source_and_describes_copies() -> None:
    assert lines(resources(), "exporter") == [
        "eu group shop-* Describe",
        "eu topic mm2-configs.us.internal Read",
        "eu topic mm2-offsets.us.internal Read",
        "eu topic mm2-status.us.internal Read",
        "eu topic us.checkpoints.internal Read",
        "eu topic us.heartbeats DescribeConfigs+Read",
        "eu topic us.orders Describe+DescribeConfigs",
        "us group shop-* Describe",
        "us topic heartbeats DescribeConfigs+Read",
        "us topic mm2-configs.eu.internal Read",
        "us topic mm2-offset-syncs.eu.internal Read",
        "us topic orders DescribeConfigs+Read",
    ]


def test_canaries_and_timeline_add_writes() -> None:
    read_only = resources()
    writing = replace(
        read_only,
        canary_topic="mm2slo.canary",
        state_topic="mm2slo.state.internal",
        timeline_topic="mm2slo.watermarks.internal",
        arrivals_topic="mm2slo.arrivals.internal",
    )
    added = set(lines(writing, "exporter")) - set(lines(read_only, "exporter"))
    assert added == {
        "us topic mm2slo.canary Create+Read+Write",
        "eu topic us.mm2slo.canary Read",
        "eu topic mm2slo.state.internal Create+Read+Write",
        "eu group mm2slo.leader.* Read",
        "eu topic mm2slo.watermarks.internal Create+Read+Write",
        "eu topic mm2slo.arrivals.internal Create+Write",
    }


def test_audit_reads_records_of_both_clusters() -> None:
    assert lines(resources(), "audit") == [
        "eu group spark-kafka-* Read",
        "eu topic mm2-configs.us.internal Read",
        "eu topic mm2-offsets.us.internal Read",
        "eu topic us.orders DescribeConfigs+Read",
        "us group spark-kafka-* Read",
        "us topic mm2-offset-syncs.eu.internal Read",
        "us topic orders DescribeConfigs+Read",
    ]


def test_mirrormaker_with_all_features() -> None:
    every = resources(worker_group="us-mm2", settings=ALL_SETTINGS)
    assert lines(every, "mirrormaker2") == [
        "eu cluster kafka-cluster Alter",
        "eu group shop-* Read",
        "eu group us-mm2 Read",
        "eu topic heartbeats Create+Write",
        "eu topic mm2-configs.us.internal Create+DescribeConfigs+Read+Write",
        "eu topic mm2-offsets.us.internal Create+DescribeConfigs+Read+Write",
        "eu topic mm2-status.us.internal Create+DescribeConfigs+Read+Write",
        "eu topic us.checkpoints.internal Create+Read+Write",
        "eu topic us.heartbeats Alter+AlterConfigs+Create+Read+Write",
        "eu topic us.orders Alter+AlterConfigs+Create+Read+Write",
        "eu transactional-id connect-cluster-us-mm2 Write",
        "eu transactional-id us-mm2-* Write",
        "us cluster kafka-cluster Describe",
        "us group shop-* Describe",
        "us topic heartbeats DescribeConfigs+Read",
        "us topic mm2-offset-syncs.eu.internal Create+Read+Write",
        "us topic orders DescribeConfigs+Read",
    ]


@pytest.mark.parametrize(
    ("policy", "copies"), [(DefaultPolicy("_"), "us_*"), (IdentityPolicy(source_alias="us"), "*")]
)
def test_all_topics_are_one_pattern_on_each_cluster(policy: ReplicationPolicy, copies: str) -> None:
    made = resources(policy, topics=(".*",))
    found = lines(made, "exporter")
    assert "us topic * DescribeConfigs+Read" in found
    assert f"eu topic {copies} Describe+DescribeConfigs" in found
    # Wider grants leave only what they do not imply.
    assert [line for line in found if line.startswith("us topic")] == [
        "us topic * DescribeConfigs+Read"
    ]


def test_offset_syncs_are_read_where_they_are() -> None:
    found = lines(resources(location=OffsetSyncsLocation.TARGET), "exporter")
    assert [line for line in found if "offset-syncs" in line] == [
        "eu topic mm2-offset-syncs.us.internal Read"
    ]


def test_other_engines_need_their_topics_only() -> None:
    assert lines(resources(IdentityPolicy(source_alias="us"), internal=None), "exporter") == [
        "eu topic orders Describe+DescribeConfigs",
        "us topic orders DescribeConfigs+Read",
    ]


def test_every_row_uses_declared_names() -> None:
    for row in REQUIRED_PERMISSIONS:
        assert row.component in get_args(Component)
        assert row.place in {"source", "target", "both"}
        assert row.operations
        assert set(row.operations) <= set(get_args(Operation))
