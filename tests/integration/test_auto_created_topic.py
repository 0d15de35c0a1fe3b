"""MirrorMaker 2's own consumer creates a topic that was deleted on the source."""

import flow_checks
import pytest
from exporter_watch import watch
from topic_reader import count_copies

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC = "orders"


@pytest.mark.parametrize("allowed", [True, False])
def test_deleted_source_topic_comes_back_unless_the_consumer_may_not_create_it(
    lab_progress: Progress, caplog: pytest.LogCaptureFixture, allowed: bool
) -> None:
    """The remedy of the runbook MM2TopicRecreated, where brokers create topics automatically."""
    settings = {"us->eu.consumer.metadata.max.age.ms": "1000"}
    if not allowed:
        settings["us->eu.consumer.allow.auto.create.topics"] = "false"
    topology = LabTopology(
        flows=(US_EU,),
        mm2_properties=settings,
        broker_properties={"auto.create.topics.enable": "true"},
    )
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, TOPIC): (3, 100)}) as lab:
        us = lab.cluster("us")
        wait_for(lambda: count_copies(lab, TOPIC) == 100, "the copies")
        if allowed:
            with watch(lab, [US_EU]) as seen:
                seen.until_ready()
                us.admin.delete_topic(TOPIC)
                wait_for(lambda: us.admin.partition_count(TOPIC) == 1, "a topic of one partition")
                cause = "if no user created it, MirrorMaker 2's consumer did"
                wait_for(lambda: cause in caplog.text, "its likely cause in the log")
            return
        us.admin.delete_topic(TOPIC)
        # Heartbeats are copied each second: the consumer reads its metadata many times.
        heartbeats = count_copies(lab, "heartbeats")
        wait_for(lambda: count_copies(lab, "heartbeats") >= heartbeats + 20, "20 heartbeats")
        assert us.admin.partition_count(TOPIC) == 0
