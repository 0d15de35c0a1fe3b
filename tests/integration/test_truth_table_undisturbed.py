"""Rows of docs/truth-table.md in which all processes run, observed concurrently."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from transactional_traffic import OpenTransaction
from truth_table import (
    EU_US,
    US_EU,
    Observation,
    documented,
    observe_faults,
    start_exporter,
    total,
    wait_until_working,
)

from mm2slo_lab.lab_data import Load
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]

TO_EU, TO_US = US_EU.label, EU_US.label
QUIET, CHANGED = (f"{name}-{os.getpid()}" for name in ("quiet", "changed"))
"""Topics on both clusters: one without faults, and one that is re-created."""
RECREATED = "topic re-created on the source"


@dataclass(frozen=True)
class Undisturbed:
    """An observation of each topic and flow."""

    busy: Observation
    idle: Observation
    recreated: Observation
    in_transaction: Observation


@pytest.fixture(scope="module")
def undisturbed(lab: Lab) -> Undisturbed:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    one_busy, both_busy = {US_EU: True, EU_US: False}, {US_EU: True, EU_US: True}
    with (
        start_exporter(lab, QUIET, one_busy) as quiet,
        start_exporter(lab, CHANGED, both_busy) as changed,
        OpenTransaction(eu.librdkafka(), CHANGED, transactional_id=CHANGED) as pending,
        ThreadPoolExecutor(2) as executor,
    ):
        wait_until_working(changed, CHANGED, both_busy)
        # Before the observations, because MirrorMaker 2 may restart its tasks.
        us.admin.recreate_topic(CHANGED)
        changed.until(
            lambda s: (
                total(s, "mm2_topic_recreations_total", flow=TO_EU, topic=CHANGED) == 1
                and total(s, "mm2_flow_lag_records", flow=TO_EU) < 10
            ),
            "the new topic's copies",
        )
        wait_until_working(quiet, QUIET, one_busy)
        pending.send(Load(50, partition=0))
        first = executor.submit(observe_faults, quiet, {TO_EU: "none", TO_US: "idle source"})
        second = executor.submit(observe_faults, changed, {TO_EU: RECREATED, TO_US: "none"})
        in_quiet, in_changed = first.result(), second.result()
    return Undisturbed(in_quiet[TO_EU], in_quiet[TO_US], in_changed[TO_EU], in_changed[TO_US])


def test_state_without_fault(undisturbed: Undisturbed) -> None:
    observation = undisturbed.busy
    assert observation.cells == documented("none")
    assert observation.counted("availability")[0] == observation.due_canaries
    assert observation.increase("mm2_source_end_offset", flow=TO_EU, topic=QUIET) > 10


def test_state_with_idle_source(undisturbed: Undisturbed) -> None:
    observation = undisturbed.idle
    assert observation.cells == documented("idle source")
    assert observation.counted("availability")[0] == observation.due_canaries
    assert observation.increase("mm2_source_end_offset", flow=TO_US, topic=QUIET) == 0


def test_state_with_recreated_topic(undisturbed: Undisturbed) -> None:
    observation = undisturbed.recreated
    assert observation.cells == documented(RECREATED)
    here = {"flow": TO_EU, "topic": CHANGED}
    recreations = observation.end.values("mm2_topic_recreations_total", **here)
    assert {dict(k)["side"]: v for k, v in recreations.items()} == {"source": 1, "target": 0}
    assert total(observation.end, "mm2_retention_lost_records_total", **here) == 0


def test_state_with_open_transaction_and_read_uncommitted(undisturbed: Undisturbed) -> None:
    """With read_uncommitted, MirrorMaker 2 replicates records of open transactions at once."""
    observation = undisturbed.in_transaction
    assert observation.cells == documented("none")
    assert observation.increase("mm2_replicated_source_offset", flow=TO_US, topic=CHANGED) > 10
