"""Groups of the consumer protocol (KIP-848) get the figures of classic groups."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

import flow_checks
import pytest
from confluent_kafka import Consumer
from exporter_watch import Scrape, Watch, watch
from target_resume import resume
from topic_reader import count_copies
from transactional_traffic import group_member

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC, COPY = "orders", "us.orders"
COMMITS = {0: 50, 1: 30}
"""On the source; each partition of the topic and of its copy has 50 records."""
RESUMED = {0: 10, 1: 10}
SYNC = {"sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "1"}


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), mm2_properties=SYNC)
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, TOPIC): (2, 0)}) as own:
        for partition in (0, 1):
            load = Load(50, partition=partition)
            produce(own.cluster("us").librdkafka(), TOPIC, load)
        wait_for(lambda: count_copies(own, TOPIC) == 100, "copies")
        yield own


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    with watch(lab, [US_EU], exporter={"group_members_interval": "1s"}) as watching:
        watching.until_ready()
        yield watching


def member(
    lab: Lab, cluster: str, topic: str, group: str, commits: Mapping[int, int] | None = None
) -> AbstractContextManager[Consumer]:
    """A member of *group*, whose name starts with its protocol."""
    properties, protocol = lab.cluster(cluster).librdkafka(), group.split("-", maxsplit=1)[0]
    return group_member(properties, topic, group, commits, protocol=protocol)


def figures(scrape: Scrape, cluster: str, group: str) -> tuple[object, ...]:
    """State, number of members and lag of *group* on *cluster*."""
    of_group = {"flow": US_EU.label, "cluster": cluster, "group": group}
    return (
        *scrape.active("state", "mm2_group_state", **of_group),
        scrape.value("mm2_group_members", **of_group),
        scrape.value("mm2_group_lag_records", **of_group, topic=TOPIC),
    )


def blocked(scrape: Scrape, group: str) -> set[str]:
    return scrape.active("reason", "mm2_failover_blocked", group=group)


@pytest.mark.parametrize("group", ["classic", "consumer"])
def test_group_of_either_protocol_has_state_members_lag_and_readiness(
    lab: Lab, seen: Watch, group: str
) -> None:
    with member(lab, "us", TOPIC, group, COMMITS):
        scrape = seen.until(
            lambda s: (
                figures(s, "us", group) == ("stable", 1, 20)
                and s.value("mm2_failover_ready", group=group) == 1
            ),
            f"{group}, ready with a member and a lag of 20",
        )
        resumed = resume(lab, TOPIC, group, COMMITS)
        redelivery = scrape.values("mm2_failover_redelivery_records", group=group)
        assert set(redelivery.values()) == {resumed.reread}
        assert resumed.skipped == 0
        with member(lab, "eu", COPY, group, RESUMED):
            seen.until(
                lambda s: (
                    figures(s, "eu", group) == ("stable", 1, 80)
                    and blocked(s, group) == {"target_group_active"}
                ),
                f"{group}, active on the target",
            )
        seen.until(
            lambda s: (
                figures(s, "eu", group)[:2] == ("empty", 0)
                and s.value("mm2_failover_ready", group=group) == 1
            ),
            f"{group}, synced again",
        )


def test_group_in_state_of_consumer_protocol_only_counts_as_active(lab: Lab, seen: Watch) -> None:
    """The client does not know the state `reconciling`."""
    group = "consumer-reconciling"
    commit(lab.cluster("us").librdkafka(), TOPIC, group, COMMITS)
    with member(lab, "eu", COPY, group, RESUMED), member(lab, "eu", COPY, group) as second:
        # The first member gives up no partition, because it no longer polls.
        second.poll(0)
        seen.until(
            lambda s: (
                figures(s, "eu", group) == ("unknown", 2, 80)
                and blocked(s, group) == {"target_group_active"}
            ),
            f"{group}, active on the target",
        )
