"""Readiness with MirrorMaker 2 of Kafka 3.7.0, which forgets offset syncs when it restarts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import flow_checks
import pytest
from exporter_watch import watch
from target_resume import checkpoints, resume
from topic_reader import count_copies

from mm2slo_core.topology import Flow
from mm2slo_kafka.traffic import commit
from mm2slo_lab import LabTopology
from mm2slo_lab.condition_wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exporter_watch import Scrape

    from mm2slo_lab import Lab
    from mm2slo_lab.kafka_jars import Progress

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC, VERSION = "orders", "3.7.0"
HEAD, BEHIND, NEW = "at-end", "behind", "new"
COMMITS = {HEAD: 2_100, BEHIND: 900, NEW: 700}
"""After the restart; the newest offset sync before it is beyond 900."""
CHECKPOINTS = {HEAD: 2_100, BEHIND: 500}
"""That of a group behind the newest offset sync no longer moves."""


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    """Groups of a flow that was restarted, after MirrorMaker 2 has seen all commits."""
    topology = LabTopology(flows=(US_EU,), kafka_version=VERSION, mm2_properties={"tasks.max": "1"})
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, TOPIC): (1, 0)}) as own:
        send_up_to(own, 500)
        commit_all(own, {HEAD: 500, BEHIND: 500})
        # Before: MirrorMaker 2 restarts its task for a new group, and forgets offset syncs.
        wait_for(lambda: all(checkpoints(own, TOPIC, g) for g in (HEAD, BEHIND)), "checkpoints")
        for end in range(600, 2_001, 100):  # an offset sync each
            send_up_to(own, end)
        own.mm2.restart()
        commit_all(own, COMMITS | {HEAD: 2_000})
        for end in (2_050, 2_100):  # the second checkpoint follows all commits
            send_up_to(own, end)
            commit_all(own, {HEAD: end})
            wait_for(partial(has_checkpoint_at, own, HEAD, end), f"the checkpoint at {end}")
        yield own


def send_up_to(lab: Lab, end: int) -> None:
    first = count_copies(lab, TOPIC)
    flow_checks.send(lab, US_EU, TOPIC, end - first, first=first)
    wait_for(lambda: count_copies(lab, TOPIC) == end, "copies")


def commit_all(lab: Lab, commits: dict[str, int]) -> None:
    for group, offset in commits.items():
        commit(lab.cluster("us").librdkafka(), TOPIC, group, {0: offset})


def has_checkpoint_at(lab: Lab, group: str, upstream: int) -> bool:
    return checkpoints(lab, TOPIC, group)[0].upstream_offset == upstream


@pytest.fixture(scope="module")
def judged(lab: Lab) -> Scrape:
    with watch(lab, [US_EU], flow={"kafka_version": VERSION}) as seen:
        return seen.until(
            lambda s: all(s.values("mm2_failover_ready", group=g) for g in COMMITS), "verdicts"
        )


def blocked(scrape: Scrape, group: str) -> set[str]:
    found = scrape.values("mm2_failover_blocked", group=group)
    return {dict(labels)["reason"] for labels, value in found.items() if value == 1}


@pytest.mark.parametrize("group", CHECKPOINTS)
def test_redelivery_after_restart_equals_resume_on_target(
    lab: Lab, judged: Scrape, group: str
) -> None:
    assert has_checkpoint_at(lab, group, CHECKPOINTS[group])
    resumed = resume(lab, TOPIC, group, {0: COMMITS[group]})
    bounds = judged.values("mm2_failover_redelivery_records", group=group)
    assert set(bounds.values()) == {resumed.reread}
    assert resumed.skipped == 0
    lag = judged.value("mm2_checkpoint_lag_records", group=group, topic=TOPIC)
    assert lag == COMMITS[group] - CHECKPOINTS[group]
    assert blocked(judged, group) == set()


def test_group_without_checkpoint_after_restart_is_behind_oldest_sync(
    lab: Lab, judged: Scrape
) -> None:
    assert blocked(judged, NEW) == {"behind_oldest_sync"}
    assert checkpoints(lab, TOPIC, NEW) == {}


def test_same_group_without_stated_version_is_expected_to_get_checkpoint(lab: Lab) -> None:
    with watch(lab, [US_EU]) as seen:
        scrape = seen.until(lambda s: blocked(s, NEW), "a verdict")
    assert blocked(scrape, NEW) == {"no_checkpoint"}
