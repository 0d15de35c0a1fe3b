"""Audit of a copy that was compacted earlier, and is not any more."""

import pytest
from audit_scenario.audit_process import AuditRequest, audit
from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import keyed, now
from audit_scenario.scenario_steps import US_EU
from fault_injection import Injector
from topic_reader import read_topic

from mm2slo_core.audit.audit_scope import Comparison, Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

RECORDS = 1_000


def test_audit_of_once_compacted_copy_excuses_what_compaction_removed(
    lab: Lab, fresh_topic: str
) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    copy = f"us.{fresh_topic}"
    eager = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
    eu.admin.create_topic(copy, 1, {"cleanup.policy": "compact", **eager})
    us.admin.create_topic(fresh_topic, 1)
    start = now()
    injector = Injector(us.librdkafka(), eu.librdkafka(), fresh_topic, copy)
    injector.plain(keyed(1, RECORDS))
    wait_copied(lab, US_EU, copy, injector.copied)

    def left() -> int:
        # A segment is rolled when a record arrives after its time.
        injector.plain(keyed(1, 1))
        return len(read_topic(eu.librdkafka(), copy))

    wait_for(lambda: left() < RECORDS // 2, "compaction")
    eu.admin.set_topic_configs(copy, {"cleanup.policy": "delete"})
    wait_all_committed(lab, US_EU, fresh_topic)

    request = AuditRequest(lab.config_yaml(), Window(start, now()), topics=(fresh_topic,))
    found = audit(request)

    outcome = found.outcomes[copy]
    assert outcome.scope.comparison is Comparison.RECORDS
    counts = {verdict: n for verdict, n in outcome.counts.items() if n}
    copies, sent = read_topic(eu.librdkafka(), copy), read_topic(us.librdkafka(), fresh_topic)
    assert counts == {
        Verdict.MATCHED: len(copies),
        Verdict.UNAUDITABLE: len(sent) - len(copies),
    }
    assert found.conclusion.exit_code == 0
