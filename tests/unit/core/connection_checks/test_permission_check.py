"""Needed permissions against what a cluster reports."""

import pytest

from mm2slo_core.kafka_permissions import (
    REQUIRED_PERMISSIONS,
    CheckResult,
    CheckState,
    FlowResources,
    RequiredAccess,
    Role,
    permission_result,
    required_access,
    shorten_list,
)
from mm2slo_core.replication_policy import DefaultPolicy, internal_topics
from mm2slo_core.topology import Flow

FLOW, POLICY = Flow("us", "eu"), DefaultPolicy()
RESOURCES = FlowResources(
    FLOW, POLICY, ("orders", "shop.*"), (".*",), internal_topics(FLOW, POLICY)
)
READ_SOURCE = next(
    row
    for row in REQUIRED_PERMISSIONS
    if (row.component, row.place, row.role) == ("exporter", "source", Role.TOPICS)
)
NEEDED = [RequiredAccess("topic", "orders", "Read"), RequiredAccess("topic", "shop-1", "Read")]


def test_required_access_has_visible_and_literal_names() -> None:
    visible = {("us", Role.TOPICS): ["shop-1"], ("us", Role.GROUPS): []}
    found = {
        (row.component, row.role, cluster, row.operations): [each.name for each in accesses]
        for row, cluster, accesses in required_access(RESOURCES, visible)
    }
    assert found["exporter", Role.TOPICS, "us", ("Read",)] == ["heartbeats", "orders", "shop-1"]
    assert found["exporter", Role.TOPICS, "eu", ("Describe",)] == ["us.heartbeats", "us.orders"]
    assert found["exporter", Role.GROUPS, "us", ("Describe",)] == []
    assert found["audit", Role.SPARK_GROUPS, "eu", ("Read",)] == ["spark-kafka-mm2slo"]


@pytest.mark.parametrize(
    ("answers", "state", "finding"),
    [
        ((True, True), "ok", "exporter: Read on topic orders, shop-1 of us"),
        (
            (True, False),
            "fix",
            "exporter is denied Read on topic shop-1: lag in seconds only from the timeline; "
            "transaction markers count as a lag of 1",
        ),
        (
            (True, None),
            "unknown",
            "exporter: Read on topic orders, shop-1 of us: the cluster does not report "
            "Read on topic shop-1",
        ),
        (
            (None, False),
            "fix",
            "exporter is denied Read on topic shop-1: lag in seconds only from the timeline; "
            "transaction markers count as a lag of 1",
        ),
    ],
)
def test_permission_result_has_the_worst_state(
    answers: tuple[bool | None, bool | None], state: CheckState, finding: str
) -> None:
    known = {key: yes for key, yes in zip(NEEDED, answers, strict=True) if yes is not None}
    result = permission_result("us->eu", READ_SOURCE, "us", NEEDED, known)
    remedy = "grant it to this user on cluster us" if state == "fix" else ""
    assert result == CheckResult("us->eu", "permission", state, finding, remedy)


def test_permission_result_without_visible_resource_is_unknown() -> None:
    result = permission_result("us->eu", READ_SOURCE, "us", [], {})
    assert (result.state, result.finding) == (
        "unknown",
        "exporter: Read on topic (replicated topics) of us: none is visible",
    )


def test_listed_shortens_long_lists() -> None:
    assert shorten_list(["a", "b", "c"]) == "a, b, c"
    assert shorten_list(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
