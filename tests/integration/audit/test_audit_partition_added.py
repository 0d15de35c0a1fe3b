"""A topic that grows within the window: keys go elsewhere on both sides, and nothing is amiss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audited import US_EU
from audited.auditing import Request, audit
from audited.contents import keyed, now
from audited.waiting import source_ends, wait_copied, wait_flushed
from fault_injection import Injector

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]


def test_a_topic_that_grew_is_clean(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    copy = f"us.{fresh_topic}"
    us.admin.create_topic(fresh_topic, 2)
    start = now()
    injector = Injector(us.librdkafka(), eu.librdkafka(), fresh_topic, copy)
    injector.plain(keyed(2, 500))
    wait_copied(lab, US_EU, copy, injector.copied)
    us.admin.add_partitions(fresh_topic, 4)
    injector.plain(keyed(4, 500, first=500))
    wait_for(lambda: eu.admin.partition_count(copy) == 4, f"four partitions of {copy}", 60)
    wait_copied(lab, US_EU, copy, injector.copied)
    ends = source_ends(lab, US_EU, fresh_topic)
    wait_flushed(lab, US_EU, fresh_topic, {number: end - 1 for number, end in ends.items()})

    request = Request(lab.config_yaml(), Window(start, now()), topics=(fresh_topic,))
    found = audit(request)

    outcome = found.outcomes[copy]
    assert {verdict: n for verdict, n in outcome.counts.items() if n} == {Verdict.MATCHED: 1_000}
    assert (outcome.affinity.keys, outcome.affinity.keys_split) == (50, 0)
    assert outcome.affinity.keys_disordered == 0
    assert found.conclusion.exit_code == 0
