"""Which internal topics a flow waits for."""

from typing import Any

from flow_observations import flow_config

from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.flow_plan import FlowPolicies
from mm2slo_exporter.service.flow_runner import FlowInternals
from mm2slo_kafka.cluster_metadata import TopicIdentity
from mm2slo_kafka.tailed_topic import TailBatch, TailedTopic, TopicDescription

STATE = "mm2slo.state.internal"
ABSENT = TopicDescription(None, {}, {})
NOTHING = TailBatch([], None, None)


class Cluster:
    """A ClusterHandle whose topics a test describes."""

    def __init__(self, alias: str) -> None:
        self.client = self.internals = self
        self.alias = alias
        self.follow = self.unfollow = lambda _subscription: None


def unread(end: int) -> TopicDescription:
    """A topic of one partition with *end* records."""
    return TopicDescription(TopicIdentity("id", 1), {0: 0}, {0: end})


def internals_of_a_flow() -> FlowInternals:
    clusters: Any = type("Clusters", (), {"source": Cluster("us"), "target": Cluster("eu")})()
    policies = FlowPolicies(flow_config())
    return FlowInternals(policies, clusters, STATE, CollectionHealth(), shared_target=False)


def describe(internals: FlowInternals, description: TopicDescription, *, state: bool) -> None:
    """Describe the state topic or all others."""
    for each in (*internals._first, *internals._later):
        if (each.subscription.topic == STATE) is state:
            tailed = TailedTopic(each.subscription.topic)
            tailed.describe(description)
            each.subscription.take(tailed, NOTHING)


def test_flow_waits_for_a_state_topic_of_an_earlier_exporter() -> None:
    internals = internals_of_a_flow()
    describe(internals, ABSENT, state=False)
    describe(internals, unread(2), state=True)
    assert internals.view().waiting_for == (f"{STATE} on eu",)


def test_flow_does_not_wait_for_the_state_topic_that_this_exporter_creates() -> None:
    """All its figures would be absent until the new topic is read."""
    internals = internals_of_a_flow()
    describe(internals, ABSENT, state=False)
    describe(internals, ABSENT, state=True)
    assert internals.view().waiting_for == ()
    describe(internals, unread(2), state=True)
    assert internals.view().waiting_for == ()
