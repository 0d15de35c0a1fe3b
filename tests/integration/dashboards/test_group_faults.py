"""Failover panels with blocked and with active consumer groups."""

from collections import Counter
from pathlib import Path

import pytest
from alerting_lab import SCALE, start_alerting_lab
from lab_dashboards import (
    FLOW,
    CommittingGroup,
    LabDashboards,
    covers_fault,
    observe_flow,
    wait_until_equal,
)
from steady_load import SteadyLoad
from topic_reader import count_copies

from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

BOARD = "mm2slo-failover"
WHY, SINCE = "Blocking reasons", "Blocked groups over time"
COUNTS, ROWS = "Groups by readiness", "Consumer groups"


@covers_fault("a blocked group")
def test_failover_panels_show_groups_without_checkpoints(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str, fault_panels: frozenset[tuple[str, str]]
) -> None:
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 2)
    for partition in (0, 1):
        produce(us.librdkafka(), fresh_topic, Load(20, partition=partition))
    wait_for(lambda: count_copies(faulty_lab, fresh_topic) == 40, "the copies")
    ready = f"{fresh_topic}-ready"
    # MirrorMaker 2 excludes console consumers from checkpoints by default.
    first, second = (f"console-consumer-{fresh_topic}-{number}" for number in (1, 2))
    commit(us.librdkafka(), fresh_topic, ready, {0: 20, 1: 20})
    selected = {"groups": [f".*{fresh_topic}.*"], "groups_exclude": ["none"]}
    with observe_flow(faulty_lab, tmp_path, [fresh_topic], flow=selected) as (_, seen):
        wait_until_equal(lambda: counts(seen), {"ready": 1, "blocked": 0})
        wait_for(
            lambda: fault_panels <= seen.empty_panels(), "the panel of reasons to be empty", poll=2
        )
        assert seen.values(BOARD, ROWS, "group", name="Ready") == {(ready,): 1}
        for group in (first, second):
            commit(us.librdkafka(), fresh_topic, group, {0: 20, 1: 20})
        wait_until_equal(lambda: counts(seen), {"ready": 1, "blocked": 2})
        assert {(BOARD, WHY)} == fault_panels
        assert seen.values(BOARD, WHY, "flow", "group", "reason") == {
            (FLOW, group, "no_checkpoint"): 1 for group in (first, second)
        }
        assert seen.values(BOARD, SINCE, "flow") == {(FLOW,): 2}
        wait_for(lambda: not fault_panels & seen.empty_panels(), "the panel", poll=1)
        rows = {(ready,): 1, (first,): 0, (second,): 0}
        assert seen.values(BOARD, ROWS, "group", name="Ready") == rows
        assert seen.values(BOARD, ROWS, "group", name="Redelivery, upper bound").keys() == {
            (ready,)
        }
        fleet = "Flow status"
        assert seen.value("mm2slo-overview", fleet, name="Blocked groups", flow=FLOW) == 2
        faulty_lab.mm2.stop()
        # A group that would resume on the target is ready, whether or not the flow is alive.
        wait_until_equal(
            lambda: seen.value("mm2slo-overview", "Flows by state", state="stopped"), 1
        )
        assert counts(seen) == {"ready": 1, "blocked": 2}
        assert reasons(seen) == {"no_checkpoint": 2}
        faulty_lab.mm2.start()


def counts(seen: LabDashboards) -> dict[str, float | None]:
    return {name: seen.value(BOARD, COUNTS, name=name) for name in ("ready", "blocked")}


def reasons(seen: LabDashboards) -> Counter[str]:
    """Number of groups by blocking reason."""
    return Counter(reason for _, reason in seen.values(BOARD, WHY, "group", "reason"))


def freshness(seen: LabDashboards) -> float | None:
    """The remaining budget of checkpoint freshness."""
    labels = {"flow": FLOW, "sli": "checkpoint freshness"}
    return seen.value("mm2slo-slo", "Objectives", name="Remaining budget", **labels)


def test_checkpoint_freshness_budget_of_active_group(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 2)
    wait_for(
        lambda: faulty_lab.cluster("eu").admin.partition_count(f"us.{fresh_topic}") > 0, "a copy"
    )
    with (
        SteadyLoad(us.librdkafka(), fresh_topic, (0, 1)),
        start_alerting_lab(faulty_lab, tmp_path, [FLOW], [fresh_topic], SCALE) as watched,
    ):
        seen = LabDashboards(watched.monitoring.prometheus)
        watched.wait_healthy([FLOW])
        assert freshness(seen) is None
        with CommittingGroup(us.librdkafka(), fresh_topic, f"{fresh_topic}-group") as group:
            wait_for(lambda: freshness(seen) is not None, "a budget", poll=1)
            wait_for(lambda: (freshness(seen) or 0) == 1, "a whole budget", poll=1)
            assert group.commits > 0
            faulty_lab.mm2.stop()
            # A stop of a minute costs little of the budget of the whole window.
            wait_for(lambda: 0.9 < (freshness(seen) or 1) < 0.999, "a partly spent one", poll=1)
