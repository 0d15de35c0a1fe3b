"""Redelivery after a failover, compared with a consumer that resumes on the target."""

from collections.abc import Iterator
from functools import partial

import pytest
from exporter_watch import Scrape, Watch, watch
from target_resume import checkpoints, resume
from topic_reader import committed_offsets, count_copies

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

US_EU = Flow("us", "eu")
TOPIC = "readiness"
COPY = f"us.{TOPIC}"
COUNTS = {0: 110_000, 1: 4_000}
"""Records by partition; each record contains its source offset."""
HEAD, THOUSAND, HUNDRED_THOUSAND, IDLE = "r-head", "r-1000", "r-100000", "r-idle"
COMMITS = {
    HEAD: {0: 110_000, 1: 4_000},
    THOUSAND: {0: 109_000, 1: 3_000},
    HUNDRED_THOUSAND: {0: 10_000, 1: 4_000},
    IDLE: {0: 500, 1: 123},
}
REDELIVERY = "mm2_failover_redelivery_records"


def _has_copies(lab: Lab, count: int) -> bool:
    return count_copies(lab, TOPIC) >= count


def _has_checkpoints(lab: Lab, *groups: str) -> bool:
    return all(len(checkpoints(lab, TOPIC, group)) == 2 for group in groups)


@pytest.fixture(scope="module")
def groups(lab: Lab) -> Iterator[Lab]:
    """Groups at four offsets with checkpoints; the copy contains a replayed block."""
    us = lab.cluster("us")
    us.admin.create_topic(TOPIC, 2)
    send = us.librdkafka()
    # Groups that are far behind get their checkpoints before the rest is sent: a task that starts
    # again and replicates from its last commit makes MirrorMaker 2 forget older offset syncs.
    produce(send, TOPIC, Load(14_000, partition=0, value_size=10))
    produce(send, TOPIC, Load(4_000, partition=1, value_size=10))
    wait_for(partial(_has_copies, lab, 18_000), "the first copies")
    for group in (IDLE, HUNDRED_THOUSAND):
        commit(send, TOPIC, group, COMMITS[group])
    wait_for(partial(_has_checkpoints, lab, IDLE, HUNDRED_THOUSAND), "the first checkpoints")
    produce(send, TOPIC, Load(94_000, partition=0, first=14_000, value_size=10))
    # MirrorMaker 2 has at most ten offset syncs in flight, so a burst leaves wide gaps between
    # them. The last records are sent in steps, with the syncs of a flow that keeps up.
    for first in range(108_000, 110_000, 100):
        wait_for(partial(_has_copies, lab, first + COUNTS[1]), "copies")
        produce(send, TOPIC, Load(100, partition=0, first=first, value_size=10))
    wait_for(partial(_has_copies, lab, sum(COUNTS.values())), "all copies")
    for group in (HEAD, THOUSAND):
        commit(send, TOPIC, group, COMMITS[group])
    wait_for(partial(_has_checkpoints, lab, HEAD, THOUSAND), "the last checkpoints")
    yield lab
    if not lab.mm2.running:
        lab.mm2.start()


@pytest.fixture(scope="module")
def seen(groups: Lab) -> Iterator[Watch]:
    budget = {"max_redelivery_records": 5_000, "max_checkpoint_lag_records": 5_000}
    with watch(groups, ["us->eu"], flow={"readiness": budget}) as watching:
        watching.until_ready()
        yield watching


def judged(seen: Watch, group: str) -> Scrape:
    return seen.until(
        lambda s: s.value("mm2_failover_ready", group=group) is not None,
        f"the readiness of {group}",
    )


def blocked(scrape: Scrape, group: str) -> set[str]:
    return scrape.active("reason", "mm2_failover_blocked", group=group)


def bounds(scrape: Scrape, group: str) -> tuple[float, float]:
    lower = scrape.value(REDELIVERY, group=group, bound="lower")
    upper = scrape.value(REDELIVERY, group=group, bound="upper")
    assert lower is not None
    assert upper is not None
    return lower, upper


@pytest.mark.parametrize("group", COMMITS)
def test_redelivery_equals_records_that_consumer_reads_again(
    groups: Lab, seen: Watch, group: str
) -> None:
    resumed = resume(groups, TOPIC, group, COMMITS[group])
    lower, upper = bounds(judged(seen, group), group)
    assert lower <= resumed.reread <= upper
    assert resumed.skipped == 0
    # Offsets are consecutive since the topic's start, so the bounds are equal.
    assert lower == upper == resumed.reread


def test_checkpoint_lag_equals_kafka_translation(seen: Watch) -> None:
    """Redelivery is small at the end offsets, and at most the lag of groups far behind."""
    found = {group: bounds(judged(seen, group), group)[1] for group in COMMITS}
    assert found[HEAD] <= 100
    # Each offset sync that MirrorMaker 2 skips on a busy machine doubles a gap.
    assert found[THOUSAND] <= 1_600 * 4
    # Nothing, where an offset sync happens to be at the commit.
    assert found[HUNDRED_THOUSAND] <= 10_000
    assert found[IDLE] <= COMMITS[IDLE][0] + COMMITS[IDLE][1]


@pytest.mark.parametrize("group", COMMITS)
def test_readiness_follows_redelivery_limit(groups: Lab, seen: Watch, group: str) -> None:
    scrape = judged(seen, group)
    lag = sum(
        at - mark.upstream_offset
        for partition, mark in checkpoints(groups, TOPIC, group).items()
        for at in [COMMITS[group][partition]]
    )
    assert scrape.value("mm2_checkpoint_lag_records", group=group, topic=TOPIC) == lag
    _, upper = bounds(scrape, group)
    expected = {"redelivery_over_limit"} if upper > 5_000 else set()
    assert blocked(scrape, group) == expected
    assert scrape.value("mm2_failover_ready", group=group) == (not expected)


def paused_before_commit(lab: Lab) -> bool:
    """Pause MirrorMaker 2; resume it unless it has replicated uncommitted records."""
    lab.mm2.pause()
    # A commit in flight is written by the second check.
    for _ in range(2):
        end = lab.cluster("eu").admin.end_offsets(COPY)[1]
        if committed_offsets(lab, US_EU, TOPIC).get(1, -1) + 1 >= end:
            lab.mm2.resume()
            return False
    return True


def test_replayed_block_is_counted_as_redelivery(groups: Lab, seen: Watch) -> None:
    """MM2 is killed while it replicates; redelivery then includes both copies."""
    lab, us = groups, groups.cluster("us")
    before, killed = count_copies(lab, TOPIC), False
    for first in range(4_000, 8_000, 400):
        produce(us.librdkafka(), TOPIC, Load(400, partition=1, first=first, value_size=10))
        if not killed:
            wait_for(partial(_has_copies, lab, before + first - 3_600), "the block's copies")
            if killed := paused_before_commit(lab):
                lab.mm2.kill()
    assert killed
    lab.mm2.start()
    wait_for(lambda: count_copies(lab, TOPIC) >= before + 4_000, "all copies")
    after = seen.until(
        lambda s: s.value("mm2_replicated_source_offset", topic=TOPIC, partition="1") == 8_000,
        "the position at the end",
    )
    replayed = count_copies(lab, TOPIC) - before - 4_000
    assert replayed > 0
    for group, commits in COMMITS.items():
        found = resume(lab, TOPIC, group, commits)
        lower, upper = bounds(after, group)
        assert lower <= found.reread <= upper, group
        assert found.skipped == 0, group
    late = {0: 110_000, 1: 8_000}
    commit(us.librdkafka(), TOPIC, HEAD, late)
    wait_for(
        lambda: checkpoints(lab, TOPIC, HEAD)[1].upstream_offset == 8_000, "the new checkpoint"
    )
    moved = seen.after_cycles(5)
    assert moved.value("mm2_checkpoint_lag_records", group=HEAD, topic=TOPIC) == 0
    found = resume(lab, TOPIC, HEAD, late)
    lower, upper = bounds(moved, HEAD)
    assert lower <= found.reread <= upper


def test_group_that_commits_while_mm2_is_stopped_has_no_checkpoint(
    groups: Lab, seen: Watch
) -> None:
    lab, us = groups, groups.cluster("us")
    ends = us.admin.end_offsets(TOPIC)
    lab.mm2.stop()
    commit(us.librdkafka(), TOPIC, "r-new", ends)
    # MM2 translates an offset far behind the newest sync as well, after its restart.
    commit(us.librdkafka(), TOPIC, "r-new-behind", {0: 50_000})
    us.admin.add_partitions(TOPIC, 3)
    produce(us.librdkafka(), TOPIC, Load(10, partition=2))
    commit(us.librdkafka(), TOPIC, "r-grown", {**ends, 2: 5})
    new = seen.until(lambda s: "no_checkpoint" in blocked(s, "r-new"), "no checkpoint")
    assert new.value("mm2_failover_ready", group="r-new") == 0
    assert new.values(REDELIVERY, group="r-new") == {}
    assert new.values("mm2_checkpoint_lag_records", group="r-new") == {}
    behind = seen.until(lambda s: blocked(s, "r-new-behind"), "a verdict")
    assert "no_checkpoint" in blocked(behind, "r-new-behind")
    assert "behind_oldest_sync" not in blocked(behind, "r-new-behind")
    grown = seen.until(
        lambda s: "target_partitions_missing" in blocked(s, "r-grown"), "missing partitions"
    )
    assert "no_checkpoint" in blocked(grown, "r-grown")
    assert "target_partitions_missing" not in blocked(grown, "r-new")
    # A partition added at runtime is read at once, on both sides.
    new_end = {"topic": TOPIC, "partition": "2"}
    seen.until(lambda s: s.value("mm2_source_end_offset", **new_end) == 10, "the new partition")
    lab.mm2.start()
    recovered = seen.until(
        lambda s: s.value("mm2_failover_ready", group="r-grown") == 1, "a group that is ready"
    )
    assert blocked(recovered, "r-grown") == set()
    assert recovered.value("mm2_target_end_offset", **new_end) == 10
    wait_for(
        lambda: bool(checkpoints(lab, TOPIC, "r-new-behind")), "the checkpoint of the one behind"
    )
