"""Audit of two sources that replicate into one topic: each fault is attributed to its flow."""

import pytest
from audit_scenario.audit_process import AuditRequest, audit
from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import keyed, keyless, now
from fault_injection import MARK, Injector, named

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import SURPLUS, UnitOutcome, Verdict
from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_faults import dropping
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

US_HUB, EU_HUB = Flow("us", "hub"), Flow("eu", "hub")
FLOWS = (US_HUB, EU_HUB)
TOPIC = "orders"
PROPERTIES = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    **dropping(US_HUB, MARK),
    **dropping(EU_HUB, MARK),
}
Injected = dict[Flow, Injector]


@pytest.fixture(scope="module")
def fan_in(lab_progress: Progress) -> tuple[Injected, UnitOutcome]:
    topology = LabTopology(clusters=("us", "eu", "hub"), flows=FLOWS, mm2_properties=PROPERTIES)
    start = now()
    with Lab.start(topology, progress=lab_progress) as lab:
        hub = lab.cluster("hub").librdkafka()
        injectors = {
            flow: Injector(lab.cluster(flow.source).librdkafka(), hub, TOPIC, TOPIC)
            for flow in FLOWS
        }
        for flow in FLOWS:
            lab.cluster(flow.source).admin.create_topic(TOPIC, 2)
        us, eu = injectors[US_HUB], injectors[EU_HUB]
        for flow, injector in injectors.items():
            injector.plain(keyed(2, 400, text=flow.source))
        wait_copied(lab, US_HUB, TOPIC, us.copied + eu.copied)
        # Equal records of both flows: two copies, neither is a duplicate. Which copy is whose is
        # unknown, so one flow's must not come before the other's earlier records.
        same = list(keyed(2, 50, text="same"))
        for injector in injectors.values():
            injector.plain(same)
        wait_copied(lab, US_HUB, TOPIC, us.copied + eu.copied)
        us.lose(keyed(2, 5, first=400, keys=5, text="lost"))
        us.alter(keyed(2, 3, first=500, keys=3, text="original"), b"changed")
        eu.lose(keyless(2, 4, text="lost"))
        eu.move(keyed(1, 3, first=600, keys=3, text="moved"), 1)
        for flow, injector in injectors.items():
            body = injector.plain(keyed(2, 200, first=700, text=flow.source))
            injector.duplicate(body[7])
            injector.foreign(0, next(keyless(1, 1, text=f"foreign {flow}"))[1])
        wait_copied(lab, US_HUB, TOPIC, us.copied + eu.copied)
        for flow, injector in injectors.items():
            wait_all_committed(lab, flow, TOPIC)
            injector.write_target()
        request = AuditRequest(lab.config_yaml(), Window(start, now()), topics=(TOPIC,))
        return injectors, audit(request).outcomes[TOPIC]


@pytest.mark.parametrize("flow", FLOWS)
def test_audit_attributes_each_fault_to_its_flow(
    fan_in: tuple[Injected, UnitOutcome], flow: Flow
) -> None:
    injectors, outcome = fan_in
    index = [each.flow for each in outcome.scope.flows].index(flow)
    found = named(each for each in outcome.evidence if each.flow == index)
    truth = injectors[flow].truth.places
    for verdict in (Verdict.LOST, Verdict.ALTERED, Verdict.MOVED, Verdict.DUPLICATE):
        assert found.get(verdict, set()) == truth.get(verdict, set()), verdict


def test_audit_attributes_foreign_records_to_no_flow(fan_in: tuple[Injected, UnitOutcome]) -> None:
    injectors, outcome = fan_in
    expected = {place for each in injectors.values() for place in each.truth.places[Verdict.EXTRA]}
    found = named(each for each in outcome.evidence if each.verdict is Verdict.EXTRA)
    assert found == {Verdict.EXTRA: expected}
    assert len(expected) == 2


def test_audit_matches_all_other_records_by_flow(fan_in: tuple[Injected, UnitOutcome]) -> None:
    injectors, outcome = fan_in
    for index, each in enumerate(outcome.scope.flows):
        matched = sum(
            partition.counts.get(Verdict.MATCHED, 0)
            for partition in outcome.partitions
            if partition.flow == index
        )
        assert matched == injectors[each.flow].copied == 650
    injected = {*SURPLUS, Verdict.MATCHED, Verdict.LOST, Verdict.ALTERED, Verdict.MOVED}
    assert {verdict: n for verdict, n in outcome.counts.items() if n}.keys() <= injected
