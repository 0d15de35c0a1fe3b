"""Flows with another separator, and with the identity policy: names, lag, canaries, groups.

A custom separator changes remote topic names and two of the six internal topics.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import flow_checks
import pytest
from exporter_watch import Watch, counters_never_decreased

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
CONNECT = {f"mm2-{kind}.us.internal" for kind in ("offsets", "status", "configs")}


class Policy(NamedTuple):
    """A setting of the policy, and the names that MirrorMaker 2 gives with it."""

    properties: Mapping[str, str]
    configured: str
    """In mm2slo.yaml."""
    copies: Mapping[str, str]
    """By source topic."""
    syncs: str
    """On the source."""
    on_target: set[str]


POLICIES = {
    "separator": Policy(
        {"replication.policy.separator": "_"},
        "separator: _",
        # With the default separator this topic would seem to come from a cluster "orders".
        {"orders.v1": "us_orders.v1"},
        "mm2-offset-syncs_eu_internal",
        {"us_checkpoints_internal", "us_heartbeats"},
    ),
    "identity": Policy(
        {"replication.policy.class": ("org.apache.kafka.connect.mirror.IdentityReplicationPolicy")},
        "kind: identity",
        # Kafka renames every topic whose name ends with "heartbeats" by the default policy.
        {"orders": "orders", "my-heartbeats": "us.my-heartbeats"},
        "mm2-offset-syncs.eu.internal",
        {"us.checkpoints.internal", "us.heartbeats", "heartbeats"},
    ),
}


@pytest.fixture(scope="module", params=POLICIES)
def policy(request: pytest.FixtureRequest) -> Policy:
    return POLICIES[request.param]


@pytest.fixture(scope="module")
def lab(policy: Policy, lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), mm2_properties=policy.properties)
    topics = {(US_EU, topic): (3, 600) for topic in policy.copies}
    with flow_checks.start_lab(topology, lab_progress, topics) as own:
        yield own


@pytest.fixture(scope="module")
def topic(policy: Policy) -> str:
    return next(iter(policy.copies))


@pytest.fixture(scope="module")
def seen(policy: Policy, lab: Lab) -> Iterator[Watch]:
    assert policy.configured in lab.config_yaml()
    with flow_checks.watch_flows(lab, "policy", US_EU) as watching:
        yield watching


def test_lag_of_idle_flow_is_exact(policy: Policy, lab: Lab, seen: Watch) -> None:
    for topic, copy in policy.copies.items():
        at_rest = flow_checks.until_copied(lab, seen, US_EU, topic, copy=copy)
        # Live: the offset syncs topic was found.
        assert flow_checks.position_qualities(at_rest, US_EU, topic) == {"live"}
        assert flow_checks.read_numbers(lab, US_EU, copy) == list(range(600))
        info = at_rest.by("target_topic", "mm2_topic_info", flow="us->eu", topic=topic)
        assert info.keys() == {copy}


def test_only_source_topics_are_monitored(policy: Policy, seen: Watch) -> None:
    # Neither internal topics nor the timeline are expected to be replicated.
    monitored = seen.scrapes[-1].by("topic", "mm2_topic_info", flow="us->eu")
    assert monitored.keys() == {*policy.copies, "heartbeats"}
    assert set(seen.scrapes[-1].values("mm2_topic_missing", flow="us->eu").values()) == {0}


def test_canaries_arrive_by_heartbeats(seen: Watch) -> None:
    scrape = flow_checks.until_canaries(seen, US_EU, 5)
    assert scrape.value("mm2_heartbeats_present", flow="us->eu") == 1
    assert flow_checks.canary_value(scrape, US_EU, "late_total") == 0


def test_group_at_end_offsets_is_ready(lab: Lab, seen: Watch, topic: str) -> None:
    flow_checks.commit_end_offsets(lab, US_EU, topic, "readers")
    flow_checks.until_ready_to_fail_over(seen, US_EU, "readers", topic)


def test_topic_names_equal_those_of_mirrormaker(policy: Policy, lab: Lab) -> None:
    us, eu = (lab.cluster(alias).admin.topics() for alias in ("us", "eu"))
    assert policy.syncs in us
    assert policy.on_target | CONNECT <= eu


def test_stop_shows_backlog_and_start_clears_it(
    policy: Policy, lab: Lab, seen: Watch, topic: str
) -> None:
    copy = policy.copies[topic]
    before = flow_checks.end_offsets(lab.cluster("us").librdkafka(), topic)
    lab.mm2.stop()
    flow_checks.send(lab, US_EU, topic, 90, first=600)
    flow_checks.until_lag(lab, seen, US_EU, topic, copied=before)
    lab.mm2.start()
    # With a lag of 0 in each partition.
    flow_checks.until_copied(lab, seen, US_EU, topic, copy=copy)
    assert flow_checks.read_numbers(lab, US_EU, copy) == list(range(690))
    assert counters_never_decreased(seen.scrapes) == []
