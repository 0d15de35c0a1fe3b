"""Audit of dual-produced topics with different partition counts."""

import itertools
from dataclasses import replace

import pytest
from audit_scenario.audit_process import AuditRequest, AuditResult, audit
from audit_scenario.record_contents import keyed, now
from fault_injection import Found, named, write

from mm2slo_core.audit.audit_scope import Comparison, Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

US_EU = Flow("us", "eu")
TOPIC = "orders"
PARTITIONS = {"us": 10, "eu": 5}
RECORDS, KEYS = 3_000, 100
LOST, ALTERED = range(600, 660, 10), range(700, 740, 10)
FOREIGN = 4
SPLIT = range(1_007, RECORDS, KEYS)
"""Records of one key that the target's producer sends to another partition."""
FLOW = {"engine": "dual-produce", "policy": {"kind": "identity"}, "topics": [TOPIC]}


@pytest.fixture(scope="module")
def result(lab_progress: Progress) -> tuple[AuditResult, dict[Verdict, set[Found]]]:
    topology = LabTopology(flows=(US_EU,), engine=LabEngine.NONE)
    with Lab.start(topology, progress=lab_progress) as lab:
        for alias, partitions in PARTITIONS.items():
            lab.cluster(alias).admin.create_topic(TOPIC, partitions)
        start = now()
        # An hour ago, so that missing records are overdue; the last one proves progress.
        sent = [
            (number % KEYS, replace(content, timestamp=start - 3_600_000 + number))
            for number, (_, content) in enumerate(keyed(1, RECORDS, keys=KEYS))
        ]
        sent += [(7, next(keyed(1, 1, first=RECORDS + 7, keys=KEYS))[1])]
        us = write(
            lab.cluster("us").librdkafka(), TOPIC, ((key % 10, content) for key, content in sent)
        )
        on_target = [
            (
                (key + (number in SPLIT)) % 5,
                replace(content, value=b"changed") if number in ALTERED else content,
            )
            for number, (key, content) in enumerate(sent)
            if number not in LOST
        ]
        foreign = keyed(1, FOREIGN, first=90_000, keys=100_000, text="foreign")
        on_target += [(0, replace(content, timestamp=start - 3_600_000)) for _, content in foreign]
        eu = write(lab.cluster("eu").librdkafka(), TOPIC, on_target)
        window = Window(start - 3_700_000, start - 60_000)
        found = audit(AuditRequest(lab.config_yaml(flow=FLOW), window, topics=(TOPIC,)))
    truth = {
        Verdict.LOST: {Found(Side.SOURCE, *us[number].place) for number in LOST},
        Verdict.ALTERED: {Found(Side.SOURCE, *us[number].place) for number in ALTERED},
        Verdict.EXTRA: {Found(Side.TARGET, *each.place) for each in eu[-FOREIGN:]},
    }
    return found, truth


def test_audit_with_different_partition_counts_names_faults(
    result: tuple[AuditResult, dict[Verdict, set[Found]]],
) -> None:
    found, truth = result
    outcome = found.outcomes[TOPIC]
    assert outcome.scope.comparison is Comparison.KEYS
    assert named(outcome.evidence) == truth
    assert outcome.counts[Verdict.MATCHED] == RECORDS - len(LOST) - len(ALTERED)
    assert found.conclusion.exit_code == 1


def test_audit_reports_key_that_changed_partition(
    result: tuple[AuditResult, dict[Verdict, set[Found]]],
) -> None:
    affinity = result[0].outcomes[TOPIC].affinity
    assert affinity.keys == KEYS
    assert affinity.keys_split == len(affinity.broken_keys) == 1
    moved = len(SPLIT)
    assert affinity.records_moved == min(moved, RECORDS // KEYS - moved)


def test_audit_of_dual_produced_topic_has_no_positions(
    result: tuple[AuditResult, dict[Verdict, set[Found]]],
) -> None:
    (flow,) = result[0].outcomes[TOPIC].scope.flows
    assert not flow.has_positions
    assert not list(itertools.filterfalse(lambda each: each.known_from == 0, flow.partitions))
