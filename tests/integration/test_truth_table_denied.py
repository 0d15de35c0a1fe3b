"""Rows of docs/truth-table.md with denied permissions, or with read_committed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from exporter_watch import Scrape, Watch, watch
from steady_load import SteadyLoad
from transactional_traffic import OpenTransaction
from truth_table import (
    CLASS,
    FLOW,
    FLOW_SETTINGS,
    Observation,
    documented,
    is_working,
    observe_fault,
    total,
)

from mm2slo_lab.lab_data import Load
from mm2slo_lab.lab_topology import APP
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("secured-lab")]

TOPIC = "payments"
# docs/permissions.md, as ACLs: (cluster, resource, name, operation). Read implies Describe.
MIN_PERMISSIONS = (
    ("us", "TOPIC", TOPIC, "READ"),
    ("us", "TOPIC", TOPIC, "DESCRIBE_CONFIGS"),
    ("us", "TOPIC", "heartbeats", "READ"),
    ("us", "TOPIC", "heartbeats", "WRITE"),
    ("us", "TOPIC", "heartbeats", "DESCRIBE_CONFIGS"),
    ("us", "TOPIC", "mm2-offset-syncs.eu.internal", "READ"),
    ("us", "GROUP", "*", "DESCRIBE"),
    ("eu", "TOPIC", f"us.{TOPIC}", "DESCRIBE"),
    ("eu", "TOPIC", f"us.{TOPIC}", "DESCRIBE_CONFIGS"),
    ("eu", "TOPIC", "us.heartbeats", "READ"),
    ("eu", "TOPIC", "us.heartbeats", "DESCRIBE_CONFIGS"),
    ("eu", "TOPIC", "us.checkpoints.internal", "READ"),
    *(("eu", "TOPIC", f"mm2-{kind}.us.internal", "READ") for kind in ("offsets", "status")),
    ("eu", "TOPIC", "mm2-configs.us.internal", "READ"),
    *(("eu", "TOPIC", "mm2slo.watermarks.internal", what) for what in ("READ", "WRITE", "CREATE")),
    *(("eu", "TOPIC", "mm2slo.arrivals.internal", what) for what in ("WRITE", "CREATE")),
    *(("eu", "TOPIC", "mm2slo.state.internal", what) for what in ("READ", "WRITE", "CREATE")),
    ("eu", "GROUP", "mm2slo.leader.us-to-eu", "READ"),
    ("eu", "GROUP", "*", "DESCRIBE"),
)


@pytest.fixture(scope="module")
def secured(secured_lab: Lab) -> Iterator[Lab]:
    secured_lab.cluster("us").admin.create_topic(TOPIC, 2)
    for cluster, *permission in MIN_PERMISSIONS:
        secured_lab.cluster(cluster).admin.grant(APP.name, *permission)
    yield secured_lab
    for cluster, *permission in MIN_PERMISSIONS:
        secured_lab.cluster(cluster).admin.revoke(APP.name, *permission)


@contextmanager
def watch_with_min_permissions(lab: Lab) -> Iterator[Watch]:
    """Start an exporter with minimum permissions, and wait until its flow is working."""
    flow = {**FLOW_SETTINGS, "topics": [TOPIC]}
    load = SteadyLoad(lab.cluster("us").librdkafka(), TOPIC, (0, 1))
    with load, watch(lab, [FLOW], flow=flow, exporter={"instance": "denied"}, user=APP) as seen:
        seen.until_ready()
        seen.until(lambda s: is_working(s, TOPIC), "a working flow")
        yield seen


@contextmanager
def denied(lab: Lab, *permissions: tuple[str, str, str, str]) -> Iterator[None]:
    """Revoke permissions until the block ends."""
    for cluster, resource, name, operation in permissions:
        assert lab.cluster(cluster).admin.revoke(APP.name, resource, name, operation) == 1
    try:
        yield
    finally:
        for cluster, resource, name, operation in permissions:
            lab.cluster(cluster).admin.grant(APP.name, resource, name, operation)


@contextmanager
def without_refresh(lab: Lab) -> Iterator[None]:
    """MirrorMaker 2 does not find new partitions until the block ends."""
    lab.mm2.configure({"refresh.topics.interval.seconds": "86400"})
    lab.mm2.restart()
    try:
        yield
    finally:
        lab.mm2.configure({})
        lab.mm2.restart()


def failed_stages(observation: Observation) -> set[tuple[str, str, str]]:
    """Cluster, stage and reason of all errors during the observation."""
    name = "mm2_exporter_collect_errors_total"
    before, after = observation.start.values(name), observation.end.values(name)
    return {
        (found["cluster"], found["stage"], found["reason"])
        for labels, count in after.items()
        if count > before.get(labels, 0)
        for found in (dict(labels),)
    }


def all_succeeded(observation: Observation, stages: Sequence[tuple[str, str]]) -> bool:
    """Whether each stage succeeded during the observation."""
    name = "mm2_exporter_last_success_timestamp_seconds"

    def at(scrape: Scrape, cluster: str, stage: str) -> float:
        return scrape.value(name, cluster=cluster, stage=stage) or 0.0

    return all(at(observation.end, *stage) > at(observation.start, *stage) for stage in stages)


def test_documented_permissions_suffice(secured: Lab) -> None:
    with watch_with_min_permissions(secured) as seen:
        observation = observe_fault(seen, "none")
    assert observation.cells == documented("none")
    assert failed_stages(observation) == set()


def test_state_with_produce_denied_on_source(secured: Lab) -> None:
    fault = "produce denied on the source"
    with (
        watch_with_min_permissions(secured) as seen,
        denied(secured, ("us", "TOPIC", "heartbeats", "WRITE")),
    ):
        observation = observe_fault(seen, fault)
    assert observation.cells == documented(fault)
    assert failed_stages(observation) == {("us", "canary_send", "authorization")}
    assert observation.counted("availability")[2] == observation.due_canaries
    assert all_succeeded(
        observation, [("us", "end_offsets"), ("eu", "end_offsets"), ("eu", "canary_receive")]
    )


@pytest.mark.long
def test_state_with_read_denied_on_source(secured: Lab) -> None:
    fault = "read denied on the source"
    with (
        watch_with_min_permissions(secured) as seen,
        denied(
            secured,
            ("us", "TOPIC", TOPIC, "READ"),
            ("us", "TOPIC", TOPIC, "DESCRIBE_CONFIGS"),
        ),
    ):
        observation = observe_fault(seen, fault)
    assert observation.cells == documented(fault)
    found = failed_stages(observation)
    assert ("us", "topics", "authorization") in found
    assert {(cluster, reason) for cluster, _, reason in found} == {("us", "authorization")}
    assert all_succeeded(
        observation, [("eu", "end_offsets"), ("eu", "canary_receive"), ("us", "canary_send")]
    )
    # Neither the topic nor its copy counts as missing.
    assert total(observation.end, "mm2_topic_missing", topic=TOPIC) == 0
    assert not observation.end.values("mm2_replication_lag_records", topic=TOPIC)


@pytest.mark.long
def test_state_with_read_denied_on_target(secured: Lab) -> None:
    fault = "read denied on the target"
    copies = (f"us.{TOPIC}", "us.heartbeats")
    lost = [
        permission
        for permission in MIN_PERMISSIONS
        if permission[0] == "eu" and permission[2] in copies
    ]
    assert len(lost) == 4
    with watch_with_min_permissions(secured) as seen, denied(secured, *lost):
        observation = observe_fault(seen, fault)
    assert observation.cells == documented(fault)
    found = failed_stages(observation)
    for stage in ("topics", "canary_receive"):
        assert ("eu", stage, "authorization") in found
    assert {cluster for cluster, _, _ in found} == {"eu"}
    assert {reason for _, _, reason in found} <= {"authorization", "unknown_topic"}
    assert all_succeeded(observation, [("us", "end_offsets"), ("us", "canary_send")])
    assert total(observation.end, "mm2_topic_missing", topic=TOPIC) == 0
    assert observation.increase("mm2_source_end_offset", topic=TOPIC) > 40


@pytest.mark.long
def test_state_with_open_transaction_and_read_committed(secured: Lab) -> None:
    fault = "open transaction, MM2 reads committed"
    us = secured.cluster("us")
    with watch_with_min_permissions(secured) as seen:
        with OpenTransaction(us.librdkafka(), TOPIC, transactional_id="held") as pending:
            pending.send(Load(1, partition=0))
            pending.send(Load(1, partition=1))
            observation = observe_fault(seen, fault)
            pending.commit()
        end = seen.until(
            lambda s: (
                total(s, "mm2_open_transaction_records", topic=TOPIC) == 0
                and (total(s, "mm2_flow_lag_records", flow=FLOW)) < 20
            ),
            "the backlog to be replicated",
        )
    assert observation.cells == documented(fault)
    # All produced records are in open transactions, and not lag.
    held = observation.increase("mm2_open_transaction_records", topic=TOPIC)
    assert held == observation.increase("mm2_source_end_offset", topic=TOPIC) > 40
    assert total(observation.end, "mm2_replication_lag_records", topic=TOPIC) == 0
    assert observation.increase("mm2_replicated_source_offset", topic=TOPIC) == 0
    assert total(end, "mm2_replicated_source_offset", topic=TOPIC) > total(
        observation.end, "mm2_source_end_offset", topic=TOPIC
    )


@pytest.mark.long
def test_state_with_partition_added_on_source(secured: Lab) -> None:
    """MirrorMaker 2 refreshes topics every 10 minutes by default; here once a day."""
    fault = "partition added on the source"
    us = secured.cluster("us")
    with without_refresh(secured), watch_with_min_permissions(secured) as seen:
        us.admin.add_partitions(TOPIC, 3)
        with SteadyLoad(us.librdkafka(), TOPIC, (2,)):
            observation = observe_fault(seen, fault)
    assert observation.cells == documented(fault)
    end = observation.end
    assert total(end, "mm2_partition_drift", topic=TOPIC) == 1
    assert total(end, "mm2_unassigned_partitions", topic=TOPIC) == 1
    stalled = end.values("mm2_partition_stalled", topic=TOPIC)
    assert {dict(k)["partition"]: v for k, v in stalled.items()} == {"0": 0, "1": 0, "2": 1}
    lag = end.value("mm2_replication_lag_records", topic=TOPIC, partition="2")
    assert lag == end.value("mm2_source_end_offset", topic=TOPIC, partition="2")
    good, judged, unknown = observation.counted("data_freshness", CLASS)
    assert (good * 3, unknown) == (judged * 2, 0)
