"""Consumer groups that a failover would lose or that move: each group by its name and reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from paging import SCALE, paged
from reading import copied
from shown import FLOW, Moving, Shown, looked_at, shows, soon
from steady import SteadyLoad

from mm2slo_kafka.traffic import Load, commit, produce
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

BOARD = "mm2slo-failover"
WHY, SINCE = "Why are groups not ready?", "Since when are groups not ready?"
COUNTS, ROWS = "How many groups are ready?", "Which groups would resume, and which not?"
PROMISE = "Is the promise of fresh checkpoints kept?"
TARGET = 0.99


@shows("a group that is not ready")
def test_groups_that_mirrormaker_leaves_out(
    broken: Lab, tmp_path: Path, fresh_topic: str, filled: frozenset[tuple[str, str]]
) -> None:
    us = broken.cluster("us")
    us.admin.create_topic(fresh_topic, 2)
    for partition in (0, 1):
        produce(us.librdkafka(), fresh_topic, Load(20, partition=partition))
    wait_for(lambda: copied(broken, fresh_topic) == 40, "the copies", 60)
    ready = f"{fresh_topic}-ready"
    # Of the kind that MirrorMaker 2 makes no checkpoints for, unless it is told to.
    first, second = (f"console-consumer-{fresh_topic}-{number}" for number in (1, 2))
    commit(us.librdkafka(), fresh_topic, ready, {0: 20, 1: 20})
    judged = {"groups": [f".*{fresh_topic}.*"], "groups_exclude": ["nobody"]}
    with looked_at(broken, tmp_path, [fresh_topic], flow=judged) as (_, seen):
        soon(lambda: counts(seen), {"ready": 1, "not ready": 0})
        wait_for(lambda: filled <= seen.empty(), "the panels of reasons to be empty", 90, 2)
        assert seen.values(BOARD, ROWS, "group", of="Ready") == {(ready,): 1}
        for group in (first, second):
            commit(us.librdkafka(), fresh_topic, group, {0: 20, 1: 20})
        soon(lambda: counts(seen), {"ready": 1, "not ready": 2})
        assert {(BOARD, WHY), (BOARD, SINCE)} == filled
        assert seen.values(BOARD, WHY, "flow", "group", "reason") == {
            (FLOW, group, "no_checkpoint"): 1 for group in (first, second)
        }
        assert seen.values(BOARD, SINCE, "flow") == {(FLOW,): 2}
        wait_for(lambda: not filled & seen.empty(), "both panels", 30, 1)
        rows = {(ready,): 1, (first,): 0, (second,): 0}
        assert seen.values(BOARD, ROWS, "group", of="Ready") == rows
        assert seen.values(BOARD, ROWS, "group", of="Read again, at most").keys() == {(ready,)}
        fleet = "Which flows need attention first?"
        assert seen.value("mm2slo-overview", fleet, of="Groups not ready", flow=FLOW) == 2
        broken.mm2.stop()
        # What keeps all of them is told beside what keeps some.
        soon(lambda: counts(seen), {"ready": 0, "not ready": 3})
        soon(lambda: seen.values(BOARD, SINCE, "flow"), {(FLOW,): 3})
        soon(lambda: reasons(seen)["flow_not_alive"], 3)
        assert reasons(seen)["no_checkpoint"] == 2
        broken.mm2.start()
        soon(lambda: counts(seen), {"ready": 1, "not ready": 2}, 120)


def counts(seen: Shown) -> dict[str, float | None]:
    return {name: seen.value(BOARD, COUNTS, of=name) for name in ("ready", "not ready")}


def reasons(seen: Shown) -> Counter[str]:
    """Groups by what keeps them from being ready."""
    return Counter(reason for _, reason in seen.values(BOARD, WHY, "group", "reason"))


@shows("a group that moves")
def test_the_promise_of_a_group_that_moves(
    broken: Lab, tmp_path: Path, fresh_topic: str, filled: frozenset[tuple[str, str]]
) -> None:
    us = broken.cluster("us")
    us.admin.create_topic(fresh_topic, 2)
    wait_for(lambda: broken.cluster("eu").admin.partition_count(f"us.{fresh_topic}") > 0, "a copy")
    with (
        SteadyLoad(us.librdkafka(), fresh_topic, (0, 1)),
        paged(broken, tmp_path, [FLOW], [fresh_topic], SCALE) as watched,
    ):
        seen = Shown(watched.monitoring.prometheus)
        watched.healthy([FLOW])
        assert {(BOARD, PROMISE)} == filled <= seen.empty()
        with Moving(us.librdkafka(), fresh_topic, f"{fresh_topic}-group") as group:
            wait_for(lambda: seen.value(BOARD, PROMISE) is not None, "a budget", 120, 1)
            wait_for(lambda: (seen.value(BOARD, PROMISE) or 0) == 1, "a whole budget", 60, 1)
            assert not filled & seen.empty()
            assert group.commits > 0
            broken.mm2.stop()
            wait_for(lambda: (seen.value(BOARD, PROMISE) or 0) < -1, "a spent one", 120, 1)
        # Nothing moves any more: once the counters rest for some steps, it is what they say.
        good, events, _ = watched.seen.after_rounds(10).sli(FLOW, "checkpoint_freshness")
        left = 1 - (events - good) / events / (1 - TARGET)
        wait_for(
            lambda: seen.value(BOARD, PROMISE) == pytest.approx(left, rel=0.15), f"{left}", 90, 1
        )
