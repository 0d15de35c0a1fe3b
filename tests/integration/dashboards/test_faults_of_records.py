"""Records that wait, are held back, are lost or whose task failed: the panels say how many."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from reading import copied
from shown import FLOW, looked_at, shows, soon
from steady import SteadyLoad

from mm2slo_core.topology import Flow
from mm2slo_kafka.traffic import Load, OpenTransaction, produce
from mm2slo_lab import faults
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

BOARD = "mm2slo-flow"
HELD = "Does a transaction hold records back?"
UNTIL, WAIT = "When will it have caught up?", "How many records wait?"
TASKS, STILL = "Do the tasks run?", "Which topics stand still?"
LOST, ROOM = "How many records are lost for certain?", "How many records are between?"
FAILED = 6


@pytest.fixture
def committed(broken: Lab) -> Iterator[Lab]:
    """A lab whose flow reads committed records."""
    broken.mm2.configure({"us.consumer.isolation.level": "read_committed"})
    broken.mm2.restart()
    yield broken
    broken.mm2.configure({})
    broken.mm2.restart()


@shows("an open transaction")
def test_open_transactions_hold_back_what_was_written_since(
    committed: Lab, tmp_path: Path, fresh_topic: str, filled: frozenset[tuple[str, str]]
) -> None:
    us = committed.cluster("us")
    other = f"{fresh_topic}-other"
    for topic in (fresh_topic, other):
        us.admin.create_topic(topic, 2)
        produce(us.librdkafka(), topic, Load(10, partition=0))
        wait_for(lambda name=topic: copied(committed, name) == 10, "the copies", 60)  # type: ignore[misc]
    settings = {"isolation": "read_committed"}
    topics = [fresh_topic, other]
    with looked_at(committed, tmp_path, topics, flow=settings) as (_, seen):
        wait_for(lambda: seen.value(BOARD, WAIT) == 0, "the flow at rest", 60, 0.5)
        assert {(BOARD, HELD)} == filled <= seen.empty()
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
            wait_for(lambda: not filled & seen.empty(), "the panel", 30, 1)
            # It is no lag: nothing that could be copied waits.
            assert seen.value(BOARD, WAIT) == 0
            one.commit()
            two.commit()
        wait_for(lambda: not seen.values(BOARD, HELD, "topic"), "nothing to be held", 60, 0.5)


def test_a_backlog_says_how_long_it_will_last(
    broken: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us = broken.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    produce(us.librdkafka(), fresh_topic, Load(10))
    wait_for(lambda: copied(broken, fresh_topic) == 10, "the copies", 60)
    # So many that several scrapes see them shrink, however quick the machine.
    count = 1_000_000
    with looked_at(broken, tmp_path, [fresh_topic]) as (watched, seen):
        wait_for(lambda: seen.value(BOARD, UNTIL) == 0, "no time left at rest", 60, 0.5)
        broken.mm2.stop()
        produce(us.librdkafka(), fresh_topic, Load(count))
        wait_for(lambda: seen.value(BOARD, WAIT) == count, "the backlog", 60, 0.5)
        # It grew, and does not shrink: nobody can tell.
        wait_for(lambda: seen.value(BOARD, UNTIL) is None, "no figure", 60, 0.5)
        broken.mm2.start(wait=False)
        wait_for(lambda: seen.value(BOARD, WAIT) == 0, "the end", 120, 0.2)
        left = dict(seen.course(BOARD, UNTIL))
        behind = dict(seen.course(BOARD, WAIT))
        shrinking = {at: each for at, each in left.items() if each > 0 and behind.get(at)}
        assert shrinking
        fastest = max(a - b for a, b in pairwise(behind.values()))
        # Records that wait by the time that they take: a net rate that was there.
        assert all(0 < behind[at] / each <= 2 * fastest for at, each in shrinking.items())
        wait_for(lambda: seen.value(BOARD, UNTIL) == 0, "no time left", 60, 0.5)
        assert watched.scrape().value("mm2_flow_lag_records", flow=FLOW) == 0


def test_records_that_retention_removed_are_counted(
    broken: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us = broken.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    produce(us.librdkafka(), fresh_topic, Load(50))
    wait_for(lambda: copied(broken, fresh_topic) == 50, "the copies", 60)
    with looked_at(broken, tmp_path, [fresh_topic]) as (_, seen):
        wait_for(lambda: seen.value(BOARD, ROOM, topic=fresh_topic) == 50, "the room", 60, 0.5)
        soon(lambda: seen.value(BOARD, LOST), 0)
        broken.mm2.stop()
        produce(us.librdkafka(), fresh_topic, Load(100, first=50))
        wait_for(lambda: seen.value(BOARD, WAIT) == 100, "the backlog", 60, 0.5)
        us.admin.delete_records(fresh_topic, {0: 90})
        # 50 were copied and 90 are gone; the increase is drawn out over its edges.
        wait_for(lambda: (seen.value(BOARD, LOST) or 0) > 0, "the loss", 60, 0.5)
        wait_for(
            lambda: seen.value(BOARD, LOST) == pytest.approx(40, rel=0.1), "the loss of 40", 60, 0.5
        )
        assert seen.value(BOARD, ROOM, topic=fresh_topic) == -40
        assert seen.value(BOARD, WAIT) == 60


def test_a_failed_task_is_told_from_one_that_runs(
    broken: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    us_eu = Flow("us", "eu")
    us = broken.cluster("us")
    us.admin.create_topic(fresh_topic, 4)
    with SteadyLoad(us.librdkafka(), fresh_topic, range(4)):
        wait_for(lambda: copied(broken, fresh_topic) > 0, "the first copies", 60)
        with looked_at(broken, tmp_path, [fresh_topic]) as (_, seen):

            def states() -> dict[tuple[str, ...], float]:
                found = seen.values(BOARD, TASKS, "connector", "task")
                return {key: each for key, each in found.items() if "Source" in key[0]}

            wait_for(lambda: sorted(states().values()) == [0, 0], "two tasks", 90, 0.5)
            assert seen.values(BOARD, STILL, "topic") == {}
            try:
                [failed] = faults.fail_task(broken, us_eu, fresh_topic)
                wait_for(lambda: sorted(states().values()) == [0, FAILED], "a failure", 60, 0.5)
                [(connector, task)] = [key for key, each in states().items() if each == FAILED]
                assert f"{connector}-{task}" == failed
                key = (fresh_topic,)
                wait_for(lambda: key in seen.values(BOARD, STILL, "topic"), "a stall", 60, 0.5)
                # One of the two tasks has some of the partitions, the other goes on.
                assert 1 <= seen.values(BOARD, STILL, "topic")[key] < 4
                assert seen.value(BOARD, "In which state is it?") == 0
            finally:
                faults.repair_task(broken, us_eu, fresh_topic)
            wait_for(lambda: sorted(states().values()) == [0, 0], "the repair", 90, 0.5)
