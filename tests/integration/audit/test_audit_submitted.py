"""The audit as `spark-submit` runs it: its master, jars and memory, and the same exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audit_scenario import US_EU
from audit_scenario.audit_command import submitted
from audit_scenario.flow_waits import source_ends, wait_copied, wait_flushed
from audit_scenario.record_contents import keyed
from fault_injection import Injector

from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("audit-lab")]


def test_it_finds_a_fault_and_says_so_by_its_exit_code(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 2)
    copy = f"us.{fresh_topic}"
    injector = Injector(us.librdkafka(), eu.librdkafka(), fresh_topic, copy)
    injector.plain(keyed(2, 500))
    wait_copied(lab, US_EU, copy, injector.copied)
    ends = source_ends(lab, US_EU, fresh_topic)
    wait_flushed(lab, US_EU, fresh_topic, {number: end - 1 for number, end in ends.items()})
    chosen = ("--since", "1h", "--sample", "100%", "--max-pending", "1ms")
    lab.mm2.stop()
    try:
        injector.plain(keyed(2, 6, first=500))
        found = submitted(lab.config_yaml(), *chosen, "--topic", fresh_topic)
    finally:
        lab.mm2.start()

    assert found.exit_code == 1, found.said
    (topic,) = found.report["topics"]
    counts = {verdict: n for verdict, n in topic["counts"].items() if n}
    assert counts == {Verdict.MATCHED: 500, Verdict.OVERDUE: 6}
    assert "faults: 6 overdue; 500 matched" in found.said

    refused = submitted(lab.config_yaml(), *chosen, "--topic", "nowhere")
    assert refused.exit_code == 2
    assert "topic 'nowhere' is not copied by these flows" in refused.said
    assert "Traceback" not in refused.said
