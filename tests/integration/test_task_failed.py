"""One of two tasks fails, with or without the canaries' partition."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from exporter_watch import Scrape, Watch, watch
from steady_load import SteadyLoad

from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_audit.scope.scope_reader import read_scopes
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_lab import lab_faults
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

US_EU = Flow("us", "eu")
FLOW = US_EU.label
SOURCE = "MirrorSourceConnector"
TOPIC = "task-failed"
PARTITIONS = range(4)
SLICES = 2
HEARTBEATS = TopicPartition("heartbeats", 0)


@dataclass(frozen=True)
class Failure:
    """A failed task with its partitions, and scrapes at the start and end of a period."""

    task: int
    lost_partitions: frozenset[int]
    start: Scrape
    end: Scrape

    def counted(self, sli: str, tier: str = "all") -> tuple[float, float, float]:
        """Good, total and unknown events of the period."""
        before, after = self.start.sli(FLOW, sli, tier), self.end.sli(FLOW, sli, tier)
        good, total, unknown = (new - old for new, old in zip(after, before, strict=True))
        return good, total, unknown


def assignments(seen: Watch) -> Mapping[int, tuple[TopicPartition, ...]]:
    """Partitions of each task, as the exporter read them from MirrorMaker 2's configs topic."""
    store = seen.exporter._flows._runners[FLOW]._internals._store
    return store._configs.assignments[store._source_connector]


def task_of(seen: Watch, partition: TopicPartition) -> int:
    return next(task for task, held in assignments(seen).items() if partition in held)


def partitions_of(seen: Watch, task: int) -> frozenset[int]:
    return frozenset(number for topic, number in assignments(seen)[task] if topic == TOPIC)


def stalled(scrape: Scrape) -> frozenset[int]:
    return frozenset(
        map(int, scrape.active("partition", "mm2_partition_stalled", flow=FLOW, topic=TOPIC))
    )


def fail(lab: Lab, seen: Watch, task: int) -> Failure:
    """Fail *task*, wait for some slices with all its partitions stalled, and repair it."""
    held = partitions_of(seen, task)
    try:
        failed = lab_faults.fail_mirror_task(lab, US_EU, TOPIC, partition=min(held))
        assert failed == (f"{SOURCE}-{task}",)
        start = seen.until(
            lambda s: stalled(s) == held and is_overdue(s, held), "stalled partitions"
        )
        slices = start.sli(FLOW, "data_freshness", "orders")[1] + SLICES * len(PARTITIONS)
        end = seen.until(
            lambda s: s.sli(FLOW, "data_freshness", "orders")[1] >= slices, f"{SLICES} slices"
        )
        assert_audit_finds_nothing_lost(lab, held)
    finally:
        lab_faults.repair_mirror_task(lab, US_EU, TOPIC)
    return Failure(task, held, start, end)


def assert_audit_finds_nothing_lost(lab: Lab, waiting: frozenset[int]) -> None:
    """Audits judge records up to the position of their own partition as lost or replicated."""
    config, now = load_config(lab.config_yaml()), round(time.time() * 1000)
    with open_clients(config) as clients:
        (scope,) = read_scopes(config, [FLOW], [TOPIC], Window(now - 600_000, now), clients).scopes
    copied = {each.partition: each.end for each in scope.partitions}
    for each in scope.flows[0].partitions:
        assert each.next_offset is not None
        assert each.next_offset <= copied[each.partition]
        if each.partition in waiting:
            assert copied[each.partition] < each.end


def is_overdue(scrape: Scrape, partitions: frozenset[int]) -> bool:
    """Whether the lag exceeds its threshold, and earlier canaries are settled."""
    lags = scrape.by("partition", "mm2_replication_lag_seconds", flow=FLOW, topic=TOPIC)
    return min(lag for partition, lag in lags.items() if int(partition) in partitions) > 6


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    us = lab.cluster("us")
    us.admin.create_topic(TOPIC, len(PARTITIONS))
    produce(us.librdkafka(), TOPIC, Load(40))
    flow = {
        "topics": [TOPIC],
        "stall_after": "3s",
        "slice": "4s",
        "freshness": [{"name": "orders", "topics": [".*"], "threshold": "2s"}],
        "canary": {"deadline": "3s", "latency_tiers": ["2s", "3s"]},
    }
    with (
        SteadyLoad(us.librdkafka(), TOPIC, PARTITIONS),
        watch(lab, [FLOW], flow=flow, exporter={"instance": TOPIC}) as watching,
    ):
        watching.until_ready()
        watching.until(lambda _: len(assignments(watching)) == 2, "two tasks")
        watching.until(lambda s: s.sli(FLOW, "availability")[0] >= 2, "canaries")
        yield watching


def test_failed_task_without_canaries_affects_freshness_only(lab: Lab, seen: Watch) -> None:
    task = 1 - task_of(seen, HEARTBEATS)
    failure = fail(lab, seen, task)
    good, total, unknown = failure.counted("data_freshness", "orders")
    held = len(failure.lost_partitions)
    assert 0 < held < len(PARTITIONS)
    assert total >= SLICES * len(PARTITIONS)
    assert good * len(PARTITIONS) == total * (len(PARTITIONS) - held)
    assert unknown == 0
    sent_good, sent, sent_unknown = failure.counted("availability")
    assert sent_good == sent >= 2 * SLICES
    assert sent_unknown == 0
    assert_task_reported(failure, seen)


def test_failed_task_with_canaries_affects_availability(lab: Lab, seen: Watch) -> None:
    seen.until(lambda s: stalled(s) == frozenset(), "no stalled partitions")
    task = task_of(seen, HEARTBEATS)
    failure = fail(lab, seen, task)
    good, total, unknown = failure.counted("data_freshness", "orders")
    held = len(failure.lost_partitions)
    assert good * len(PARTITIONS) == total * (len(PARTITIONS) - held) > 0
    assert unknown == 0
    sent_good, sent, sent_unknown = failure.counted("availability")
    assert (sent_good, sent_unknown) == (0, 0)
    assert sent >= 2 * SLICES
    assert failure.counted("completeness") == (0, 0, 0)
    assert_task_reported(failure, seen)
    end = seen.until(
        lambda s: (
            stalled(s) == frozenset()
            and s.value("mm2_flow_lag_records", flow=FLOW) in range(20)
            and s.sli(FLOW, "completeness")[1] == s.value("mm2_canary_sent_total", flow=FLOW)
        ),
        "no lag after the repair",
    )
    # Canaries sent during the failure arrived late; none was lost.
    sent_total = end.value("mm2_canary_sent_total", flow=FLOW)
    assert end.sli(FLOW, "completeness") == (sent_total, sent_total, 0)


def assert_task_reported(failure: Failure, seen: Watch) -> None:
    """Check the task's state, its stalled partitions, and that the flow is running."""
    end = failure.end
    for task in (0, 1):
        states = {"flow": FLOW, "connector": SOURCE, "task": str(task)}
        expected = {"failed" if task == failure.task else "running"}
        assert end.active("state", "mm2_task_state", **states) == expected
    assert stalled(end) == failure.lost_partitions
    count = end.value("mm2_stalled_partitions", flow=FLOW, topic=TOPIC)
    assert count == len(failure.lost_partitions)
    since = seen.scrapes[seen.scrapes.index(failure.start) : seen.scrapes.index(end) + 1]
    assert {scrape.state(FLOW) for scrape in since} == {"running"}
