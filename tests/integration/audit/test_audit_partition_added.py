"""Audit of a topic that gets more partitions within the window."""

import pytest
from audit_scenario.audit_process import AuditRequest, audit
from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import keyed, now
from audit_scenario.scenario_steps import US_EU
from fault_injection import Injector

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]


def test_audit_of_topic_with_added_partitions_finds_no_fault(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    copy = f"us.{fresh_topic}"
    us.admin.create_topic(fresh_topic, 2)
    start = now()
    injector = Injector(us.librdkafka(), eu.librdkafka(), fresh_topic, copy)
    injector.plain(keyed(2, 500))
    wait_copied(lab, US_EU, copy, injector.copied)
    us.admin.add_partitions(fresh_topic, 4)
    injector.plain(keyed(4, 500, first=500))
    wait_for(lambda: eu.admin.partition_count(copy) == 4, f"four partitions of {copy}")
    wait_copied(lab, US_EU, copy, injector.copied)
    wait_all_committed(lab, US_EU, fresh_topic)

    request = AuditRequest(lab.config_yaml(), Window(start, now()), topics=(fresh_topic,))
    found = audit(request)

    outcome = found.outcomes[copy]
    assert {verdict: n for verdict, n in outcome.counts.items() if n} == {Verdict.MATCHED: 1_000}
    assert (outcome.affinity.keys, outcome.affinity.keys_split) == (50, 0)
    assert outcome.affinity.keys_disordered == 0
    assert found.conclusion.exit_code == 0
