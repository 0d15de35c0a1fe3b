"""Advice for a running flow: each rule, with the figures that it rests on."""

from __future__ import annotations

from typing import Any

import pytest
from live_samples import FACTS, ORDERS, changed, evenly

from mm2slo_core.mm2_config.live_advice import Advice, FlowFacts, PartitionFacts, advise
from mm2slo_core.topology import TopicPartition


def about(topic: str, facts: FlowFacts = FACTS, **changes: Any) -> Advice:
    (found,) = [each for each in advise(changed(**changes) if changes else facts).advice
                if each.about == topic]  # fmt: skip
    return found


def test_advise_loads_rates_and_shares_are_those_of_each_task() -> None:
    live = advise(FACTS)
    assert live.tasks is not None
    rows = [(t.task, t.partitions, t.replicated, t.produced, t.lag) for t in live.tasks]
    assert rows == [
        (0, 3, 1_000, 1_400, 264_000),
        (1, 3, 300, 300, 0),
        *((task, 2, 200, 200, 0) for task in (2, 3, 4)),
    ]
    assert [round(t.share or 0, 3) for t in live.tasks] == [0.526, 0.158, 0.105, 0.105, 0.105]
    total = live.total
    assert (total.task, total.replicated, total.produced, total.lag) == (
        None,
        1_900,
        2_300,
        264_000,
    )


def test_advise_partitions_that_are_not_data_count_but_have_no_figures() -> None:
    tasks = {0: ORDERS, 1: [TopicPartition("heartbeats", 0)]}
    live = advise(changed(tasks=tasks))
    assert live.tasks is not None
    assert [(t.task, t.partitions, t.replicated) for t in live.tasks] == [(0, 12, 1_900), (1, 1, 0)]
    assert (live.total.partitions, live.total.replicated) == (13, 1_900)
    assert advise(changed(tasks={0: ORDERS[:6]})).total.partitions == 12


@pytest.mark.parametrize(
    ("changes", "finding", "step"),
    [
        ({}, "uneven: 2 to 3 partitions per task", "tasks.max 4 or 6 would be even"),
        ({"tasks": {n: ORDERS[n::4] for n in range(4)}}, "even: 3 per task", ""),
        ({"tasks": {0: ORDERS}}, "one task replicates all partitions",
         "tasks.max 2 would be even"),
        ({"tasks": {n: ORDERS[n::13] for n in range(13)}}, "13 tasks wanted for 12 partitions",
         "add partitions, or lower tasks.max to 12: more tasks do nothing"),
        ({"tasks": {n: ORDERS[n : n + 1] for n in range(12)}, "settings": {"tasks.max": "20"}},
         "20 tasks wanted for 12 partitions",
         "add partitions, or lower tasks.max to 12: more tasks do nothing"),
        ({"tasks": {0: ORDERS[:6], 1: ORDERS[6:11]}}, "1 partitions without a task, such as "
         "orders-11", "check the source connector: nothing replicates them"),
    ],
)  # fmt: skip
def test_tasks_compares_partitions_per_task(
    changes: dict[str, Any], finding: str, step: str
) -> None:
    found = about("tasks", **changes)
    assert (found.finding, found.next_step) == (finding, step)


def test_tasks_without_a_near_even_value_names_the_number_of_partitions() -> None:
    prime = [TopicPartition("t", number) for number in range(31)]
    found = about("tasks", tasks={n: prime[n::5] for n in range(5)}, partitions={})
    assert found.evidence == "partitions 31, tasks 5, tasks.max 5"
    assert found.next_step == "tasks.max 31 would be even"


@pytest.mark.parametrize("tasks", [None, {}])
def test_tasks_unknown_says_why_and_guesses_nothing(tasks: Any) -> None:
    live = advise(changed(tasks=tasks, no_tasks="mm2-configs.us.internal has no task"))
    assert not live.tasks
    assert live.advice[0] == Advice("tasks", "not known", "mm2-configs.us.internal has no task")
    assert "busiest task" not in {each.about for each in live.advice}
    assert live.total.replicated == 1_900


def test_tasks_max_that_is_a_reference_is_not_known() -> None:
    found = about("tasks", settings={"tasks.max": "${file:/x:tasks}"})
    assert found.evidence == "partitions 12, tasks 5, tasks.max not known"


def test_busiest_task_with_one_busy_partition_is_not_split_by_more_tasks() -> None:
    found = about("busiest task")
    assert found.finding == "task 0 replicates 53% of the records"
    assert found.evidence == "1,000 records/s, 800 of them orders-0; an even share is 20%"
    assert (
        found.next_step == "more tasks do not split orders-0: spread its keys over more partitions"
    )


def test_busiest_task_with_many_partitions_gives_some_up() -> None:
    facts = changed(partitions=evenly(6_000, 6_000, 0), tasks={0: ORDERS[:10], 1: ORDERS[10:11],
                                                               2: ORDERS[11:]})  # fmt: skip
    assert (
        about("busiest task", facts).next_step == "raise tasks.max, so that it gives up partitions"
    )


def test_busiest_task_with_an_even_share_needs_no_step() -> None:
    assert about("busiest task", changed(partitions=evenly(6_000, 6_000, 0))).next_step == ""


@pytest.mark.parametrize("replicated", [0, None])
def test_busiest_task_is_not_known_without_replicated_records(replicated: int | None) -> None:
    found = about("busiest task", changed(partitions=evenly(replicated, 0, 5)))
    assert (found.finding, found.next_step) == ("not known", "")
    loads = advise(changed(partitions=evenly(replicated, 0, 5))).tasks or ()
    assert [each.share for each in loads] == [None] * 5


@pytest.mark.parametrize(
    ("first", "last", "lag", "catch_up", "seconds"),
    [
        (240_000, 264_000, "grows from 240,000 to 264,000 records", "never at this rate", None),
        (400_000, 264_000, "shrinks from 400,000 to 264,000 records",
         "ends in about 116s at this rate", 264_000 / 136_000 * 60),
        (264_000, 230_000, "shrinks from 264,000 to 230,000 records",
         "ends in about 7m at this rate", 230_000 / 34_000 * 60),
        (264_000, 264_000,
         "changes by less than 2 s of traffic: from 264,000 to 264,000 records", "not known", None),
        (264_000, 268_600,
         "changes by less than 2 s of traffic: from 264,000 to 268,600 records", "not known", None),
        (264_000, 259_400,
         "changes by less than 2 s of traffic: from 264,000 to 259,400 records", "not known", None),
        (264_000, 268_601, "grows from 264,000 to 268,601 records", "never at this rate", None),
        (0, 4_600, "keeps up: 4,600 records, at most 2 s of traffic", "no backlog", 0.0),
        (0, 4_601, "grows from 0 to 4,601 records", "never at this rate", None),
        (90_000, 0, "keeps up: 0 records, at most 2 s of traffic", "no backlog", 0.0),
        (None, 264_000, "264,000 records; its trend is not known", "not known", None),
        (240_000, None, "not known", "not known", None),
    ],
)  # fmt: skip
def test_lag_trend_decides_whether_catch_up_ends(
    first: int | None, last: int | None, lag: str, catch_up: str, seconds: float | None
) -> None:
    facts = changed(first_lag=first, lag=last)
    live = advise(facts)
    assert about("lag", facts).finding == lag
    assert about("catch-up", facts).finding == catch_up
    assert live.catch_up_seconds == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("first", "lag"),
    [
        (600, "is not worked off: from 600 to 600 records"),
        (500, "grows from 500 to 600 records"),
        (6_000, "is not worked off: from 6,000 to 600 records"),  # retention removed records
    ],
)
def test_catch_up_of_a_flow_that_replicates_nothing_points_to_its_tasks(
    first: int, lag: str
) -> None:
    facts = changed(partitions=evenly(0, 0, 50), first_lag=first, lag=600)
    found = about("catch-up", facts)
    assert (about("lag", facts).finding, found.finding) == (lag, "never at this rate")
    assert advise(facts).catch_up_seconds is None
    assert "MM2FlowStopped" in found.next_step
    assert about("limit", facts).evidence == "no partition with lag was seen to advance"


def test_one_reading_shows_no_rate_and_no_trend() -> None:
    live = advise(changed(seconds=0.0))
    assert (live.total.replicated, live.total.produced, live.catch_up_seconds) == (None, None, None)
    assert {each.about: each.finding for each in live.advice} == {
        "tasks": "uneven: 2 to 3 partitions per task",
        "busiest task": "not known",
        "lag": "264,000 records; its trend is not known",
        "catch-up": "not known",
        "limit": "not known",
    }


TRIPS = (0.1, 0.01)
MIB = 1_048_576


def one_partition(megabytes: float, **changes: Any) -> FlowFacts:
    """A partition with lag that copies *megabytes* per second, in records of 1 kB."""
    moved = round(megabytes * 1e6 * 60 / 1_000)
    return changed(
        partitions={ORDERS[0]: PartitionFacts(moved, moved, 10**9)},
        first_lag=10**9, lag=10**9, round_trips=TRIPS, **changes,
    )  # fmt: skip


WIDE = {"source.consumer.receive.buffer.bytes": str(100 * MIB)}


@pytest.mark.parametrize(
    ("megabytes", "settings", "finding", "setting"),
    [
        # 1 MiB per 100 ms is 10.5 MB/s, 16 KiB per 10 ms are 1.64 MB/s, 64 KiB per 100 ms 0.66.
        (8, WIDE | {"producer.override.batch.size": str(MIB)}, "fetch-bound: orders-0",
         "us.consumer.max.partition.fetch.bytes"),
        (1.2, WIDE, "batch-bound: orders-0", "us->eu.producer.override.batch.size"),
        (0.5, {}, "window-bound: orders-0", "us.consumer.receive.buffer.bytes"),
        (0.4, {}, "no sign of one: the task's CPU or the brokers are the limit", ""),
        (1.1, WIDE, "no sign of one: the task's CPU or the brokers are the limit", ""),
        (0.5, {"consumer.receive.buffer.bytes": "-1"},
         "no sign of one: the task's CPU or the brokers are the limit", ""),
        (0.5, {"consumer.receive.buffer.bytes": "${env:SIZE}"},
         "no sign of one: the task's CPU or the brokers are the limit", ""),
    ],
)  # fmt: skip
def test_limit_is_the_nearest_one_from_70_percent_on(
    megabytes: float, settings: dict[str, str], finding: str, setting: str
) -> None:
    found = about("limit", one_partition(megabytes, settings=settings))
    assert found.finding == finding
    assert found.next_step.endswith(setting)
    assert found.evidence.startswith(f"orders-0 copies {megabytes:g} MB/s (1,000 B per record by ")


def test_limit_evidence_has_share_setting_and_round_trip() -> None:
    found = about("limit")
    assert found.evidence.partition(": ")[2] == (
        "122% of receive.buffer.bytes (65,536 B per 80 ms and broker, of its task), 29% of "
        "batch.size (16,384 B per 6 ms), 6% of max.partition.fetch.bytes (1,048,576 B per 80 ms)"
    )
    assert found.next_step == (
        "raise consumer.receive.buffer.bytes of the connector; in dedicated mode "
        "us.consumer.receive.buffer.bytes"
    )


def test_limit_batch_has_at_least_one_record() -> None:
    settings = WIDE | {"producer.override.batch.size": "100"}
    assert "50% of batch.size" in about("limit", one_partition(0.05, settings=settings)).evidence


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"round_trips": None}, "state --round-trip"),
        ({"record_size": None}, "state the record size (--record-size)"),
        ({"round_trips": None, "record_size": None},
         "state the record size (--record-size) and --round-trip"),
    ],
)  # fmt: skip
def test_limit_names_what_is_missing(changes: dict[str, Any], step: str) -> None:
    found = about("limit", changed(**changes))
    assert (found.finding, found.next_step) == ("not known", step)


def test_limit_without_backlog_is_not_judged() -> None:
    found = about("limit", changed(first_lag=9, lag=9, record_size=None))
    assert (found.finding, found.next_step) == ("none is reached", "")


def test_positions_from_commits_ask_for_a_longer_observation() -> None:
    assert about("positions", changed(coarse=3)).next_step == "observe for longer: --observe 5m"
    assert "positions" not in {each.about for each in advise(FACTS).advice}


def test_connection_carries_all_partitions_of_a_task() -> None:
    """None of ten slow partitions is near a limit; together they fill the window."""
    many = {each: PartitionFacts(4_800, 4_800, 1_000) for each in ORDERS[:10]}
    found = about("limit", partitions=many, tasks={0: ORDERS[:10]}, lag=10_000)
    assert found.finding.startswith("window-bound")
    assert found.evidence.partition(": ")[2].startswith("98% of receive.buffer.bytes")


def test_positions_that_move_with_commits_are_no_alarm() -> None:
    found = about("catch-up", partitions=evenly(0, 1_000, 500), coarse=12)
    assert (found.finding, "observe for longer" in found.next_step) == ("not known", True)
    assert "MM2FlowStopped" in about("catch-up", partitions=evenly(0, 1_000, 500)).next_step
