"""The topics and groups that the exporter writes to."""

import pytest
from acl_grants import least_grants

from mm2slo_core.cluster_writes import ClusterWrite, cluster_writes
from mm2slo_core.config.config_document import Resolvers
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.kafka_permissions import FlowResources
from mm2slo_core.replication_policy import DefaultPolicy

TWO_FLOWS = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
  ap: {bootstrap_servers: "ap:9092"}
flows:
  - {flow: us->eu}
  - {flow: us->ap, canary: {carrier: topic}}
"""
STATE, TIMELINE = "mm2slo.state.internal", "mm2slo.watermarks.internal"
ARRIVALS = "mm2slo.arrivals.internal"
LEADERS = "mm2slo.leader.*"


def load(text: str) -> Config:
    return load_config(text, resolvers=Resolvers(env=lambda name: name, file=lambda name: name))


def test_writes_are_canaries_timeline_and_election_of_each_flow() -> None:
    assert cluster_writes(load(TWO_FLOWS)) == (
        ClusterWrite("ap", "group", LEADERS, "membership, no offsets",
                     ("us->ap",)),
        ClusterWrite("ap", "topic", ARRIVALS, "arrival times", ("us->ap",)),
        ClusterWrite("ap", "topic", STATE, "losses and verdicts", ("us->ap",)),
        ClusterWrite("ap", "topic", TIMELINE, "watermark timeline", ("us->ap",)),
        ClusterWrite("eu", "group", LEADERS, "membership, no offsets",
                     ("us->eu",)),
        ClusterWrite("eu", "topic", ARRIVALS, "arrival times", ("us->eu",)),
        ClusterWrite("eu", "topic", STATE, "losses and verdicts", ("us->eu",)),
        ClusterWrite("eu", "topic", TIMELINE, "watermark timeline", ("us->eu",)),
        ClusterWrite("us", "group", "mm2slo.canary.*", "membership, no offsets",
                     ("us->eu", "us->ap")),
        ClusterWrite("us", "topic", "heartbeats", "canaries", ("us->eu",)),
        ClusterWrite("us", "topic", "mm2slo.canary", "canaries", ("us->ap",)),
    )  # fmt: skip


def test_writes_of_several_flows_to_one_topic_are_one() -> None:
    found = cluster_writes(load(TWO_FLOWS.replace(", canary: {carrier: topic}", "")))
    (_, canaries) = (each for each in found if each.cluster == "us")
    assert canaries == ClusterWrite("us", "topic", "heartbeats", "canaries", ("us->eu", "us->ap"))


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("exporter: {read_only: true}", set()),
        (
            "exporter: {timeline: {enabled: false}}",
            {"heartbeats", "mm2slo.canary", "mm2slo.canary.*", STATE, LEADERS},
        ),
        (
            "exporter: {timeline: {enabled: false}, instance: here}",
            {"heartbeats", "mm2slo.canary", STATE, LEADERS},
        ),
        (
            "defaults: {canary: {carrier: off}}",
            {TIMELINE, ARRIVALS, "mm2slo.canary", "mm2slo.canary.*", STATE, LEADERS},
        ),
        (
            "defaults: {canary: {carrier: off}}\nexporter: {timeline: {arrivals: false}}",
            {TIMELINE, "mm2slo.canary", "mm2slo.canary.*", STATE, LEADERS},
        ),
    ],
)
def test_writes_that_are_switched_off_are_not_listed(setting: str, names: set[str]) -> None:
    found = cluster_writes(load(f"{TWO_FLOWS}{setting}\n"))
    assert {each.name for each in found} == names


def test_topics_written_are_those_that_the_exporters_acls_allow_to_write() -> None:
    config = load(TWO_FLOWS)
    canaries = {"us->eu": "heartbeats", "us->ap": "mm2slo.canary"}
    allowed = {
        (grant.cluster, grant.kind, grant.pattern.name)
        for flow in config.flows
        for grant in least_grants(FlowResources(
            flow.flow, DefaultPolicy(), flow.topics, flow.groups, None,
            canary_topic=canaries[flow.label], state_topic=STATE, timeline_topic=TIMELINE,
            arrivals_topic=ARRIVALS,
        ), "exporter")
        if grant.operation == "Write"
    }  # fmt: skip
    listed = {write[:3] for write in cluster_writes(config) if write.kind == "topic"}
    assert listed == allowed
