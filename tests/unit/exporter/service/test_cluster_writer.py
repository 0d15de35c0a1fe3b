"""The flows to a target share one producer and one election, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.config.service_config import ExporterConfig
from mm2slo_core.topology import Flow
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.timeline import flow_writer
from mm2slo_exporter.timeline.flow_writer import ClusterWriter, FlowWriter, leader_group
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.record_producer import Delivered
from mm2slo_lab.managed_process import wait_for

US_EU, AP_EU = Flow("us", "eu"), Flow("ap", "eu")
STATE, TIMELINE = "mm2slo.state.internal", "mm2slo.watermarks.internal"
DENIED = KafkaOperationError(ErrorKind.AUTHORIZATION, cluster="eu", operation="w", detail="no")


class Cluster:
    """A target cluster: its topics, producers and elections."""

    alias = "eu"
    handles = None

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.refused: set[str] = set()
        self.producers: list[Producer] = []
        self.elections: list[Election] = []

    def topic_exists(self, topic: str, _timeout: float) -> bool:
        return topic in self.topics

    def create_topic(self, topic: str, **_: object) -> None:
        if topic in self.refused:
            raise DENIED
        self.topics.add(topic)


class Producer:
    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, Callable[[Any], None]]] = []
        self.is_closed = False

    def send(
        self, topic: str, *, key: bytes, value: bytes, on_delivery: Callable[[Any], None]
    ) -> None:
        del value
        self.sent.append((topic, key, on_delivery))

    def poll(self, _timeout: float) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True

    def keys(self, topic: str, flow: Flow) -> list[bytes]:
        return [key for to, key, _ in self.sent if to == topic and key.startswith(start(flow))]


class Election:
    """Leads from the start until it is left."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.leading = False

    def run(self, leaving: threading.Event) -> None:
        self.leading = True
        leaving.wait()
        self.leading = False


def start(flow: Flow) -> bytes:
    return f"{flow.slug}/".encode()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    def produce(_handles: object, **_: object) -> Producer:
        made.producers.append(Producer())
        return made.producers[-1]

    def elect(_handles: object, *, group: str, **_: object) -> Election:
        made.elections.append(Election(group))
        return made.elections[-1]

    monkeypatch.setattr(flow_writer, "RecordProducer", produce)
    monkeypatch.setattr(flow_writer, "Leadership", elect)
    return made


@pytest.fixture
def health() -> CollectionHealth:
    return CollectionHealth()


@pytest.fixture
def writer(cluster: Cluster, health: CollectionHealth) -> Iterator[ClusterWriter]:
    made = ClusterWriter(cluster, ExporterConfig(), health)  # type: ignore[arg-type]  # a fake
    yield made
    made.stop()


def observe(scene: Scene, at: float, *writers: FlowWriter) -> None:
    """One round of each flow; all see the same clusters."""
    tracker = FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
    )
    seen = scene.look(at)
    report = tracker.update(seen)
    for writer in writers:
        writer.write(seen, report, tracker.topics)


def writer_of(flow: Flow, writer: ClusterWriter, health: CollectionHealth) -> FlowWriter:
    return FlowWriter(flow, writer, health, has_timeline=True)


def test_flows_share_one_producer_and_one_election(writer: ClusterWriter, cluster: Cluster) -> None:
    writer.serve([US_EU, AP_EU])
    wait_for(
        lambda: (
            writer.can_write(CollectionStage.STATE) and writer.can_write(CollectionStage.TIMELINE)
        ),
        "lead",
    )
    assert len(cluster.producers) == 1
    assert [each.group for each in cluster.elections] == [leader_group([AP_EU, US_EU])]
    assert cluster.topics == {STATE, TIMELINE, "mm2slo.arrivals.internal"}


def test_cluster_that_is_no_target_is_not_written_to(
    writer: ClusterWriter, cluster: Cluster
) -> None:
    writer.serve([])
    assert not writer.leads
    assert (cluster.topics, cluster.producers, cluster.elections) == (set(), [], [])


def test_other_flows_change_the_election_and_the_same_ones_do_not(
    writer: ClusterWriter, cluster: Cluster
) -> None:
    writer.serve([US_EU])
    wait_for(lambda: writer.leads, "lead")
    writer.serve([US_EU])
    writer.serve([US_EU, AP_EU])
    wait_for(lambda: len(cluster.elections) == 2 and writer.leads, "lead of both")
    writer.serve([])
    wait_for(lambda: not writer.leads, "the end of the election")
    writer.serve([AP_EU])
    wait_for(lambda: writer.leads, "lead of the other flow")
    assert [each.group for each in cluster.elections] == [
        "mm2slo.leader.us-to-eu",
        leader_group([US_EU, AP_EU]),
        "mm2slo.leader.ap-to-eu",
    ]
    assert len(cluster.producers) == 1


def test_refused_timeline_does_not_keep_state_from_being_written(
    writer: ClusterWriter, cluster: Cluster, health: CollectionHealth
) -> None:
    cluster.refused = {TIMELINE}
    writer.serve([US_EU])
    wait_for(lambda: writer.can_write(CollectionStage.STATE), "lead")
    assert not writer.can_write(CollectionStage.TIMELINE)
    wait_for(lambda: bool(health.failing_stages("eu")), "the failure")
    assert health.failing_stages("eu") == {CollectionStage.TIMELINE: "authorization"}


def test_refused_record_of_a_flow_is_written_again_for_that_flow_only(
    writer: ClusterWriter, cluster: Cluster, health: CollectionHealth
) -> None:
    writer.serve([US_EU, AP_EU])
    wait_for(lambda: writer.can_write(CollectionStage.TIMELINE), "lead")
    flows = [writer_of(flow, writer, health) for flow in (US_EU, AP_EU)]
    scene = Scene()
    scene.add("orders").live(5, 10)
    (producer,) = cluster.producers
    observe(scene, 100.0, *flows)
    written = [producer.keys(TIMELINE, flow) for flow in (US_EU, AP_EU)]
    assert [len(keys) for keys in written] == [2, 2]
    for topic, key, on_delivery in list(producer.sent):
        refused = key.startswith(start(US_EU))
        on_delivery(DENIED if refused else Delivered(topic, 0, 0, 0))
    producer.sent.clear()
    observe(scene, 105.0, *flows)
    assert producer.keys(TIMELINE, US_EU) == written[0]
    assert producer.keys(TIMELINE, AP_EU) == []


def test_stop_leaves_the_election_and_closes_the_producer(
    writer: ClusterWriter, cluster: Cluster
) -> None:
    writer.serve([US_EU])
    wait_for(lambda: writer.leads, "lead")
    writer.stop()
    assert not writer.leads
    assert cluster.producers[0].is_closed


def test_group_of_several_flows_depends_on_all_of_them_and_not_on_their_order() -> None:
    eu_us = Flow("eu", "us")
    group = leader_group([US_EU, AP_EU])
    assert group is not None
    assert group.startswith("mm2slo.leader.2-flows-")
    assert group == leader_group([AP_EU, US_EU])
    assert group != leader_group([AP_EU, eu_us])
    assert leader_group([]) is None
