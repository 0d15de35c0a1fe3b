"""Flow panels with backlogs, open transactions, lost records and failed tasks."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from lab_dashboards import FLOW, LabDashboards, observe_flow, wait_until_equal
from steady_load import SteadyLoad
from topic_reader import count_copies
from transactional_traffic import OpenTransaction

from mm2slo_core.topology import Flow
from mm2slo_lab import lab_faults
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

BOARD = "mm2slo-flow"
FAULTS = "Record faults"
HELD, STALLED = "records held back by open transactions", "partitions stalled"
LOST = "records lost to retention"
LAG, CATCH_UP = "Lag and time to catch up", "time to catch up"
TASKS, BY_TASK = "Connector and task states", "{{connector}} {{task}}"
FAILED = 6


@pytest.fixture
def committed(faulty_lab: Lab) -> Iterator[Lab]:
    """A lab whose flow reads committed records only."""
    faulty_lab.mm2.configure({"us.consumer.isolation.level": "read_committed"})
    faulty_lab.mm2.restart()
    yield faulty_lab
    faulty_lab.mm2.configure({})
    faulty_lab.mm2.restart()


def unreplicated(seen: LabDashboards) -> float | None:
    """Records that the flow has not replicated yet."""
    return seen.value("mm2slo-overview", "Flow status", name="Lag in records", flow=FLOW)


def time_left(seen: LabDashboards) -> float | None:
    """Seconds until the flow has caught up."""
    return seen.value(BOARD, LAG, name=CATCH_UP, flow=FLOW)


def faulty(seen: LabDashboards, kind: str) -> float | None:
    """Record faults of a kind."""
    return seen.value(BOARD, FAULTS, name=kind, flow=FLOW)


def test_panel_shows_records_held_back_by_open_transactions(
    committed: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us = committed.cluster("us")
    other = f"{fresh_topic}-other"
    for topic in (fresh_topic, other):
        us.admin.create_topic(topic, 2)
        produce(us.librdkafka(), topic, Load(10, partition=0))
        wait_for(lambda name=topic: count_copies(committed, name) == 10, "the copies")  # type: ignore[misc]
    settings = {"isolation": "read_committed"}
    topics = [fresh_topic, other]
    with observe_flow(committed, tmp_path, topics, flow=settings) as (_, seen):
        wait_for(lambda: unreplicated(seen) == 0, "the flow at rest", poll=0.5)
        assert not faulty(seen, HELD)
        with (
            OpenTransaction(us.librdkafka(), fresh_topic, transactional_id=fresh_topic) as one,
            OpenTransaction(us.librdkafka(), other, transactional_id=other) as two,
        ):
            one.send(Load(5, partition=0))
            one.send(Load(3, partition=1))
            two.send(Load(2, partition=1))
            wait_for(lambda: faulty(seen, HELD) == 10, "what is held back", poll=0.5)
            # Held-back records are not lag.
            assert unreplicated(seen) == 0
            one.commit()
            two.commit()
        wait_for(lambda: not faulty(seen, HELD), "nothing to be held", poll=0.5)


def test_time_to_catch_up_follows_shrinking_backlog(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    produce(us.librdkafka(), fresh_topic, Load(10))
    wait_for(lambda: count_copies(faulty_lab, fresh_topic) == 10, "the copies")
    # Enough that several scrapes see the backlog shrink on a fast machine.
    count = 1_000_000
    with observe_flow(faulty_lab, tmp_path, [fresh_topic]) as (watched, seen):
        wait_for(
            lambda: time_left(seen) == 0,
            "no time left at rest",
            poll=0.5,
        )
        faulty_lab.mm2.stop()
        produce(us.librdkafka(), fresh_topic, Load(count))
        wait_for(lambda: unreplicated(seen) == count, "the backlog", poll=0.5)
        # The lag is not shrinking, so there is no estimate.
        wait_for(lambda: time_left(seen) is None, "no figure", poll=0.5)
        faulty_lab.mm2.start(wait=False)
        wait_for(lambda: unreplicated(seen) == 0, "the end", 600, 0.2)
        left = dict(seen.time_series(BOARD, LAG, CATCH_UP))
        behind = dict(seen.time_series("mm2slo-overview", "Flow status", "Lag in records"))
        shrinking = {at: each for at, each in left.items() if each > 0 and behind.get(at)}
        assert shrinking
        fastest = max(a - b for a, b in pairwise(behind.values()))
        # The lag divided by the estimate is a net rate that occurred.
        assert all(0 < behind[at] / each <= 2 * fastest for at, each in shrinking.items())
        wait_for(lambda: time_left(seen) == 0, "no time left", poll=0.5)
        assert watched.scrape().value("mm2_flow_lag_records", flow=FLOW) == 0


def test_panels_show_records_lost_to_retention(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    produce(us.librdkafka(), fresh_topic, Load(50))
    wait_for(lambda: count_copies(faulty_lab, fresh_topic) == 50, "the copies")
    with observe_flow(faulty_lab, tmp_path, [fresh_topic]) as (_, seen):
        wait_until_equal(lambda: faulty(seen, LOST), 0)
        faulty_lab.mm2.stop()
        produce(us.librdkafka(), fresh_topic, Load(100, first=50))
        wait_for(lambda: unreplicated(seen) == 100, "the backlog", poll=0.5)
        us.admin.delete_records(fresh_topic, {0: 90})
        # 50 were replicated and 90 removed; increase() extrapolates to its window.
        wait_for(lambda: (faulty(seen, LOST) or 0) > 0, "the loss", poll=0.5)
        wait_for(
            lambda: faulty(seen, LOST) == pytest.approx(40, rel=0.1), "the loss of 40", poll=0.5
        )
        assert unreplicated(seen) == 60


def test_panels_distinguish_failed_from_running_task(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us_eu = Flow("us", "eu")
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 4)
    with SteadyLoad(us.librdkafka(), fresh_topic, range(4)):
        wait_for(lambda: count_copies(faulty_lab, fresh_topic) > 0, "the first copies")
        with observe_flow(faulty_lab, tmp_path, [fresh_topic]) as (_, seen):

            def states() -> dict[tuple[str, ...], float]:
                found = seen.values(BOARD, TASKS, "connector", "task", name=BY_TASK)
                return {key: each for key, each in found.items() if "Source" in key[0]}

            wait_for(lambda: sorted(states().values()) == [0, 0], "two tasks", poll=0.5)
            assert faulty(seen, STALLED) == 0
            try:
                [failed] = lab_faults.fail_mirror_task(faulty_lab, us_eu, fresh_topic)
                wait_for(lambda: sorted(states().values()) == [0, FAILED], "a failure", poll=0.5)
                [(connector, task)] = [key for key, each in states().items() if each == FAILED]
                assert f"{connector}-{task}" == failed
                wait_for(lambda: (faulty(seen, STALLED) or 0) > 0, "a stall", poll=0.5)
                # One of the two tasks has some of the partitions; the other keeps running.
                assert 1 <= (faulty(seen, STALLED) or 0) < 4
                assert seen.value(BOARD, "Flow state") == 0
            finally:
                lab_faults.repair_mirror_task(faulty_lab, us_eu, fresh_topic)
            wait_for(lambda: sorted(states().values()) == [0, 0], "the repair", poll=0.5)
