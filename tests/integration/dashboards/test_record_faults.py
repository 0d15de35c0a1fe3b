"""Flow panels with backlogs, open transactions, lost records and failed tasks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from lab_dashboards import FLOW, covers_fault, observe_flow, wait_until_equal
from steady_load import SteadyLoad
from topic_reader import count_copies

from mm2slo_core.topology import Flow
from mm2slo_kafka.traffic import Load, OpenTransaction, produce
from mm2slo_lab import faults
from mm2slo_lab.condition_wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

BOARD = "mm2slo-flow"
HELD = "Records held back by open transactions"
CATCH_UP, UNREPLICATED = "Time to catch up", "Unreplicated records"
TASKS, STALLED = "Task states", "Stalled partitions by topic"
LOST, HEADROOM = "Records lost", "Retention headroom in records"
FAILED = 6


@pytest.fixture
def committed(faulty_lab: Lab) -> Iterator[Lab]:
    """A lab whose flow reads committed records only."""
    faulty_lab.mm2.configure({"us.consumer.isolation.level": "read_committed"})
    faulty_lab.mm2.restart()
    yield faulty_lab
    faulty_lab.mm2.configure({})
    faulty_lab.mm2.restart()


@covers_fault("an open transaction")
def test_panel_shows_records_held_back_by_open_transactions(
    committed: Lab, tmp_path: Path, fresh_topic: str, fault_panels: frozenset[tuple[str, str]]
) -> None:
    us = committed.cluster("us")
    other = f"{fresh_topic}-other"
    for topic in (fresh_topic, other):
        us.admin.create_topic(topic, 2)
        produce(us.librdkafka(), topic, Load(10, partition=0))
        wait_for(lambda name=topic: count_copies(committed, name) == 10, "the copies", 60)  # type: ignore[misc]
    settings = {"isolation": "read_committed"}
    topics = [fresh_topic, other]
    with observe_flow(committed, tmp_path, topics, flow=settings) as (_, seen):
        wait_for(lambda: seen.value(BOARD, UNREPLICATED) == 0, "the flow at rest", 60, 0.5)
        assert {(BOARD, HELD)} == fault_panels <= seen.empty_panels()
        with (
            OpenTransaction(us.librdkafka(), fresh_topic, transactional_id=fresh_topic) as one,
            OpenTransaction(us.librdkafka(), other, transactional_id=other) as two,
        ):
            one.send(Load(5, partition=0))
            one.send(Load(3, partition=1))
            two.send(Load(2, partition=1))
            expected = {(fresh_topic,): 8, (other,): 2}
            wait_for(
                lambda: seen.values(BOARD, HELD, "topic") == expected, "what is held back", 60, 0.5
            )
            wait_for(lambda: not fault_panels & seen.empty_panels(), "the panel", 30, 1)
            # Held-back records are not lag.
            assert seen.value(BOARD, UNREPLICATED) == 0
            one.commit()
            two.commit()
        wait_for(lambda: not seen.values(BOARD, HELD, "topic"), "nothing to be held", 60, 0.5)


def test_time_to_catch_up_follows_shrinking_backlog(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    produce(us.librdkafka(), fresh_topic, Load(10))
    wait_for(lambda: count_copies(faulty_lab, fresh_topic) == 10, "the copies", 60)
    # Enough that several scrapes see the backlog shrink on a fast machine.
    count = 1_000_000
    with observe_flow(faulty_lab, tmp_path, [fresh_topic]) as (watched, seen):
        wait_for(lambda: seen.value(BOARD, CATCH_UP) == 0, "no time left at rest", 60, 0.5)
        faulty_lab.mm2.stop()
        produce(us.librdkafka(), fresh_topic, Load(count))
        wait_for(lambda: seen.value(BOARD, UNREPLICATED) == count, "the backlog", 60, 0.5)
        # The lag is not shrinking, so there is no estimate.
        wait_for(lambda: seen.value(BOARD, CATCH_UP) is None, "no figure", 60, 0.5)
        faulty_lab.mm2.start(wait=False)
        wait_for(lambda: seen.value(BOARD, UNREPLICATED) == 0, "the end", 600, 0.2)
        left = dict(seen.time_series(BOARD, CATCH_UP))
        behind = dict(seen.time_series(BOARD, UNREPLICATED))
        shrinking = {at: each for at, each in left.items() if each > 0 and behind.get(at)}
        assert shrinking
        fastest = max(a - b for a, b in pairwise(behind.values()))
        # The lag divided by the estimate is a net rate that occurred.
        assert all(0 < behind[at] / each <= 2 * fastest for at, each in shrinking.items())
        wait_for(lambda: seen.value(BOARD, CATCH_UP) == 0, "no time left", 60, 0.5)
        assert watched.scrape().value("mm2_flow_lag_records", flow=FLOW) == 0


def test_panels_show_records_lost_to_retention(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    produce(us.librdkafka(), fresh_topic, Load(50))
    wait_for(lambda: count_copies(faulty_lab, fresh_topic) == 50, "the copies", 60)
    with observe_flow(faulty_lab, tmp_path, [fresh_topic]) as (_, seen):
        wait_for(lambda: seen.value(BOARD, HEADROOM, topic=fresh_topic) == 50, "the room", 60, 0.5)
        wait_until_equal(lambda: seen.value(BOARD, LOST), 0)
        faulty_lab.mm2.stop()
        produce(us.librdkafka(), fresh_topic, Load(100, first=50))
        wait_for(lambda: seen.value(BOARD, UNREPLICATED) == 100, "the backlog", 60, 0.5)
        us.admin.delete_records(fresh_topic, {0: 90})
        # 50 were replicated and 90 removed; increase() extrapolates to its window.
        wait_for(lambda: (seen.value(BOARD, LOST) or 0) > 0, "the loss", 60, 0.5)
        wait_for(
            lambda: seen.value(BOARD, LOST) == pytest.approx(40, rel=0.1), "the loss of 40", 60, 0.5
        )
        assert seen.value(BOARD, HEADROOM, topic=fresh_topic) == -40
        assert seen.value(BOARD, UNREPLICATED) == 60


def test_panels_distinguish_failed_from_running_task(
    faulty_lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us_eu = Flow("us", "eu")
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 4)
    with SteadyLoad(us.librdkafka(), fresh_topic, range(4)):
        wait_for(lambda: count_copies(faulty_lab, fresh_topic) > 0, "the first copies", 60)
        with observe_flow(faulty_lab, tmp_path, [fresh_topic]) as (_, seen):

            def states() -> dict[tuple[str, ...], float]:
                found = seen.values(BOARD, TASKS, "connector", "task")
                return {key: each for key, each in found.items() if "Source" in key[0]}

            wait_for(lambda: sorted(states().values()) == [0, 0], "two tasks", 90, 0.5)
            assert seen.values(BOARD, STALLED, "topic") == {}
            try:
                [failed] = faults.fail_task(faulty_lab, us_eu, fresh_topic)
                wait_for(lambda: sorted(states().values()) == [0, FAILED], "a failure", 60, 0.5)
                [(connector, task)] = [key for key, each in states().items() if each == FAILED]
                assert f"{connector}-{task}" == failed
                key = (fresh_topic,)
                wait_for(lambda: key in seen.values(BOARD, STALLED, "topic"), "a stall", 60, 0.5)
                # One of the two tasks has some of the partitions; the other keeps running.
                assert 1 <= seen.values(BOARD, STALLED, "topic")[key] < 4
                assert seen.value(BOARD, "Flow state") == 0
            finally:
                faults.repair_task(faulty_lab, us_eu, fresh_topic)
            wait_for(lambda: sorted(states().values()) == [0, 0], "the repair", 90, 0.5)
