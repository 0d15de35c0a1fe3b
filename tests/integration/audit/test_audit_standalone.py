"""An audit on a Spark standalone cluster equals an audit in one process."""

from dataclasses import replace

import pytest
from audit_scenario.audit_process import FAST_SPARK, AuditRequest, audit_process
from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import keyed, keyless, now
from audit_scenario.scenario_steps import US_EU
from fault_injection import Injector, named
from spark_standalone import spark_standalone

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

PARTITIONS = 6
TASK = "Finished task"


def timeless(outcome: UnitOutcome) -> UnitOutcome:
    """The outcome without the time at which it was taken."""
    return replace(outcome, scope=replace(outcome.scope, taken_at=0))


def test_audit_with_two_workers_equals_audit_in_one_process(lab: Lab, fresh_topic: str) -> None:
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
        # Between two duplicates of a partition, so that they do not form a replay.
        foreign = next(keyless(1, 1, text=f"foreign {number}"))[1]
        injector.foreign(record.place.partition, foreign)
    injector.write_target()
    wait_all_committed(lab, US_EU, fresh_topic)
    request = AuditRequest(lab.config_yaml(), Window(start, now()), topics=(fresh_topic,))

    with audit_process() as local:
        expected = local.audit(request)
    conf = {**FAST_SPARK, "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "6"}
    with spark_standalone(2) as cluster, audit_process(cluster.master, conf) as remote:
        found = remote.audit(request)
        worked = [sum(log.count(TASK) for log in logs) for logs in cluster.executor_logs().values()]

    assert len(worked) == 2
    assert all(worked), worked
    assert timeless(found.outcomes[copy]) == timeless(expected.outcomes[copy])
    assert found.conclusion.line == expected.conclusion.line
    assert named(found.outcomes[copy].evidence) == injector.truth.named()
    assert found.outcomes[copy].counts[Verdict.MATCHED] == injector.copied == 25_000
