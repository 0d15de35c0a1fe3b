"""The audit run by `spark-submit`, with its master, jars and memory, and the same exit codes."""

import pytest
from audit_scenario.audit_command import run_spark_submit
from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import keyed
from audit_scenario.scenario_steps import US_EU
from fault_injection import Injector

from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]


def test_submitted_audit_with_overdue_records_exits_with_1(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 2)
    copy = f"us.{fresh_topic}"
    injector = Injector(us.librdkafka(), eu.librdkafka(), fresh_topic, copy)
    injector.plain(keyed(2, 500))
    wait_copied(lab, US_EU, copy, injector.copied)
    wait_all_committed(lab, US_EU, fresh_topic)
    chosen = ("--since", "1h", "--sample", "100%", "--max-pending", "1ms")
    lab.mm2.stop()
    try:
        injector.plain(keyed(2, 6, first=500))
        found = run_spark_submit(lab.config_yaml(), *chosen, "--topic", fresh_topic)
    finally:
        lab.mm2.start()

    assert found.exit_code == 1, found.output
    (topic,) = [each for each in found.report["topics"] if each["not_audited"] is None]
    counts = {verdict: n for verdict, n in topic["counts"].items() if n}
    assert counts == {Verdict.MATCHED: 500, Verdict.OVERDUE: 6}
    assert "faults: 6 overdue; 500 matched" in found.output

    refused = run_spark_submit(lab.config_yaml(), *chosen, "--topic", "nowhere")
    assert refused.exit_code == 2
    assert "topic 'nowhere' is not copied by these flows" in refused.output
    assert "Traceback" not in refused.output
