"""Active-active: a group that reads its region's topic and the copy of the other one moves over."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaError
from exporter_watch import FAST

from mm2slo_cli.cutover import observed
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.cutover.cutover_checks import CheckOutcome, CutoverPhase, GateQuestion
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence, CutoverTerms
from mm2slo_core.cutover.cutover_gate import CutoverDecision, GateVerdict, decide, parse_waiver
from mm2slo_core.topology import Flow
from mm2slo_lab.broker import Broker
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
SYNC = {"sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "1"}
TERMS = CutoverTerms(10.0, waivers=(parse_waiver("audit=counted by the test"),))


@pytest.fixture
def lab(lab_progress: Progress) -> Iterator[Lab]:
    with Lab.start(LabTopology(mm2_properties=SYNC), progress=lab_progress) as own:
        yield own


def read_as_group(cluster: Broker, *topics: str) -> Counter[str]:
    """What the group reads, and commits, from its positions to the ends of *topics*."""
    properties = {"group.id": "shop", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    eof = {"enable.partition.eof": True}
    consumer = Consumer({**cluster.librdkafka(), **properties, **eof})
    found: Counter[str] = Counter()
    ends = 2 * len(topics)
    try:
        consumer.subscribe(list(topics))
        while ends:
            message = consumer.poll(30)
            assert message is not None
            if (error := message.error()) is None:
                found[str(message.topic())] += 1
            else:
                assert error.code() == KafkaError._PARTITION_EOF
                ends -= 1
        if found:
            consumer.commit(asynchronous=False)
        return found
    finally:
        consumer.close()


def gate(evidence: Callable[[], CutoverEvidence | None], verdict: GateVerdict) -> CutoverDecision:
    """The decision, once it is *verdict* about all that has to be read."""
    found: list[CutoverDecision] = []

    def is_reached() -> bool:
        seen = evidence()
        if seen is None:
            return False
        found.append(decide(GateQuestion(CutoverPhase.GO, seen, TERMS)))
        unknown = {each.result for each in found[-1].checks} & {CheckOutcome.UNKNOWN}
        return found[-1].verdict is verdict and not unknown

    wait_for(is_reached, f"the verdict {verdict}")
    return found[-1]


def test_topics_of_the_target_start_where_the_group_has_commits_there(lab: Lab) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    for cluster, count in ((us, 300), (eu, 200)):
        cluster.admin.create_topic("orders", 2)
        produce(cluster.librdkafka(), "orders", Load(count))
    wait_for(lambda: sum(eu.admin.end_offsets("us.orders").values()) == 300, "copies on eu")
    wait_for(lambda: sum(us.admin.end_offsets("eu.orders").values()) == 200, "copies on us")
    assert read_as_group(us, "orders", "eu.orders").total() == 500
    config = load_config(lab.config_yaml(exporter={**FAST, "read_only": True}))
    with observed(config, US_EU) as evidence:
        failing = [
            each
            for each in gate(evidence, GateVerdict.NO_GO).checks
            if each.result is CheckOutcome.FAIL
        ]
        assert [each.name for each in failing] == ["target_commits"]
        assert failing[0].cases == ("shop: no commit on orders, which it reads as copies",)
        commit(eu.librdkafka(), "orders", "shop", eu.admin.end_offsets("orders"))
        gate(evidence, GateVerdict.GO)
    assert read_as_group(eu, "us.orders", "orders").total() == 0


def test_without_them_the_reset_policy_decides(lab: Lab) -> None:
    """What the check is for: all records of eu's own topic are read a second time."""
    us, eu = lab.cluster("us"), lab.cluster("eu")
    eu.admin.create_topic("orders", 2)
    produce(eu.librdkafka(), "orders", Load(200))
    wait_for(lambda: sum(us.admin.end_offsets("eu.orders").values()) == 200, "copies on us")
    assert read_as_group(us, "eu.orders").total() == 200
    assert read_as_group(eu, "orders").total() == 200
