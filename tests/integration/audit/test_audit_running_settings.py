"""An audit of a flow whose connector reads committed records, which mm2slo.yaml does not say."""

import time

import flow_checks
import pytest
import yaml
from audit_scenario.audit_process import AuditRequest, audit
from audit_scenario.record_contents import now
from transactional_traffic import produce_in_transaction

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load
from mm2slo_lab.lab_topology import LabTopology

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC = "orders"


def test_audit_reads_the_source_with_the_isolation_of_the_running_connector(
    lab_progress: Progress,
) -> None:
    topology = LabTopology(
        flows=(US_EU,), mm2_properties={"us->eu.consumer.isolation.level": "read_committed"}
    )
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, TOPIC): (2, 0)}) as lab:
        us = lab.cluster("us").librdkafka()
        for first, abort in ((0, False), (500, True), (1_500, False)):
            count = 1_000 if abort else 500
            load = Load(count, first=first, value_size=20)
            produce_in_transaction(us, TOPIC, load, transactional_id="orders", abort=abort)
        deadline = time.monotonic() + 60
        while len(flow_checks.read_numbers(lab, US_EU, "us.orders")) < 1_000:
            assert time.monotonic() < deadline
        assert "isolation" not in yaml.safe_load(lab.config_yaml())["flows"][0]
        window = Window(now() - 3_600_000, now())
        found = audit(AuditRequest(lab.config_yaml(), window, topics=(TOPIC,), max_pending=1))
    assert found.notes == (
        "us->eu: isolation is configured as 'read_uncommitted', but MirrorMaker 2 runs with"
        " 'read_committed'; the audit used 'read_committed'",
    )
    counts = {verdict: n for verdict, n in found.outcomes["us.orders"].counts.items() if n}
    assert counts == {Verdict.MATCHED: 1_000}
    assert found.conclusion.exit_code == 0
