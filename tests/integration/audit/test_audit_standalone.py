"""A real Spark cluster of a master and two workers gives what one process gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_scenario import US_EU
from audit_scenario.audit_process import QUICK, Request, auditor
from audit_scenario.flow_waits import source_ends, wait_copied, wait_flushed
from audit_scenario.record_contents import keyed, keyless, now
from fault_injection import Injector, named
from spark_standalone import standalone

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("audit-lab")]

PARTITIONS = 6
TASK = "Finished task"


def timeless(outcome: UnitOutcome) -> UnitOutcome:
    """Without what differs between two audits of one window: when they were taken."""
    return replace(outcome, scope=replace(outcome.scope, taken_at=0))


def test_two_workers_find_what_one_process_finds(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    copy = f"us.{fresh_topic}"
    us.admin.create_topic(fresh_topic, PARTITIONS)
    start = now()
    injector = Injector(us.librdkafka(), eu.librdkafka(), fresh_topic, copy)
    body = injector.plain(keyed(PARTITIONS, 20_000, keys=300))
    injector.plain(keyless(PARTITIONS, 5_000))
    wait_copied(lab, US_EU, copy, injector.copied)
    for number, record in enumerate(body[100:10_000:700]):
        injector.duplicate(record)
        # Between two duplicates of a partition: they are no block.
        stranger = next(keyless(1, 1, text=f"foreign {number}"))[1]
        injector.foreign(record.place.partition, stranger)
    injector.write_target()
    ends = source_ends(lab, US_EU, fresh_topic)
    wait_flushed(lab, US_EU, fresh_topic, {number: end - 1 for number, end in ends.items()})
    request = Request(lab.config_yaml(), Window(start, now()), topics=(fresh_topic,))

    with auditor() as here:
        alone = here.audit(request)
    conf = {**QUICK, "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "6"}
    with standalone(2) as cluster, auditor(cluster.master, conf) as there:
        together = there.audit(request)
        worked = [sum(log.count(TASK) for log in logs) for logs in cluster.executor_logs().values()]

    assert len(worked) == 2
    assert all(worked), worked
    assert timeless(together.outcomes[copy]) == timeless(alone.outcomes[copy])
    assert together.conclusion.line == alone.conclusion.line
    assert named(together.outcomes[copy].evidence) == injector.truth.named()
    assert together.outcomes[copy].counts[Verdict.MATCHED] == injector.copied == 25_000
