"""The shared lab replicates in both directions, and its faults have their effects."""

import time

import pytest
from flow_checks import create_replicated_topic
from topic_reader import count_copies
from transactional_traffic import OpenTransaction, consume_and_commit, produce_in_transaction

from mm2slo_core.topology import Flow
from mm2slo_lab import lab_faults
from mm2slo_lab.lab_data import Load, commit, consume, produce
from mm2slo_lab.lab_faults import failed_tasks, task_states
from mm2slo_lab.lab_topology import LabError
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]
US_EU = Flow("us", "eu")


def stays_at(lab: Lab, topic: str, count: int, seconds: float = 1.5) -> bool:
    """Whether the count stays the same for *seconds*; a copy takes about 50 ms."""
    try:
        wait_for(lambda: count_copies(lab, topic) != count, "a change", timeout=seconds)
    except LabError:
        return True
    return False


def keys(lab: Lab, remote: str) -> set[bytes | None]:
    found = consume(lab.cluster("eu").librdkafka(), [remote], 1000, until_end=True)
    return {message.key() for message in found}


@pytest.mark.parametrize("flow", [US_EU, US_EU.reverse], ids=str)
def test_topic_is_replicated_completely(lab: Lab, fresh_topic: str, flow: Flow) -> None:
    create_replicated_topic(lab, fresh_topic, 400, partitions=4, flow=flow)
    target, remote = lab.cluster(flow.target), lab.topology.remote_topic(flow, fresh_topic)

    found = consume(target.librdkafka(), [remote], 400)

    expected = {(Load(1).key(number), Load(1).value(number)) for number in range(400)}
    assert {(message.key(), message.value()) for message in found} == expected
    assert target.admin.end_offsets(remote) == (
        lab.cluster(flow.source).admin.end_offsets(fresh_topic)
    )


def test_headers_partition_and_timestamp_are_replicated(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 3)
    # Within the retention, or the record would be deleted before it is replicated.
    created_at = int(time.time()) - 3600.5
    load = Load(1, partition=2, headers=(("trace", b"t-1"),), timestamp=created_at)
    produce(us.librdkafka(), fresh_topic, load)

    (message,) = consume(us.librdkafka(), [fresh_topic], 1)
    wait_for(lambda: count_copies(lab, fresh_topic) == 1, "the copy")
    (copy,) = consume(eu.librdkafka(), [f"us.{fresh_topic}"], 1)

    for found in (message, copy):
        assert found.partition() == 2
        assert found.headers() == [("trace", b"t-1")]
        assert found.timestamp()[1] == created_at * 1000


@pytest.mark.long
def test_stopped_mirrormaker_replicates_nothing(lab: Lab, fresh_topic: str) -> None:
    create_replicated_topic(lab, fresh_topic, 10)

    lab.mm2.stop()
    try:
        assert not lab.mm2.running
        produce(lab.cluster("us").librdkafka(), fresh_topic, Load(5, first=10))
        assert stays_at(lab, fresh_topic, 10)
    finally:
        lab.mm2.start()

    wait_for(lambda: count_copies(lab, fresh_topic) >= 15, "the rest")
    assert count_copies(lab, fresh_topic) == 15, "a clean stop causes no duplicates"


@pytest.mark.long
def test_paused_mirrormaker_runs_and_replicates_nothing(lab: Lab, fresh_topic: str) -> None:
    create_replicated_topic(lab, fresh_topic, 10)

    lab.mm2.pause()
    try:
        assert lab.mm2.process.paused
        produce(lab.cluster("us").librdkafka(), fresh_topic, Load(5, first=10))
        assert stays_at(lab, fresh_topic, 10)
    finally:
        lab.mm2.resume()

    wait_for(lambda: count_copies(lab, fresh_topic) == 15, "the rest")


@pytest.mark.long
def test_killed_mirrormaker_restarts_without_loss(lab: Lab, fresh_topic: str) -> None:
    create_replicated_topic(lab, fresh_topic, 10)

    lab.mm2.kill()
    try:
        assert not lab.mm2.running
        produce(lab.cluster("us").librdkafka(), fresh_topic, Load(5, first=10))
    finally:
        lab.mm2.start()

    # Some records may be replicated twice, so keys are compared, not counts.
    expected = {Load(1).key(number) for number in range(15)}
    wait_for(lambda: keys(lab, f"us.{fresh_topic}") == expected, "every record")


@pytest.mark.long
def test_restarted_cluster_keeps_port_and_data(lab: Lab, fresh_topic: str) -> None:
    eu = lab.cluster("eu")
    create_replicated_topic(lab, fresh_topic, 10)
    address = eu.bootstrap_servers

    eu.stop()
    try:
        assert not eu.running
        produce(lab.cluster("us").librdkafka(), fresh_topic, Load(5, first=10))
    finally:
        eu.start()

    assert eu.bootstrap_servers == address
    assert count_copies(lab, fresh_topic) >= 10
    wait_for(lambda: count_copies(lab, fresh_topic) >= 15, "the rest")
    lab.mm2.wait_mirroring()


def test_deleted_records_move_the_log_start(lab: Lab, fresh_topic: str) -> None:
    us = lab.cluster("us")
    create_replicated_topic(lab, fresh_topic, 10)

    assert us.admin.delete_records(fresh_topic, {0: 7}) == {0: 7}

    assert us.admin.start_offsets(fresh_topic) == {0: 7}
    assert us.admin.end_offsets(fresh_topic) == {0: 10}


def test_short_retention_removes_old_segments(lab: Lab, fresh_topic: str) -> None:
    us = lab.cluster("us")
    create_replicated_topic(lab, fresh_topic, 10)

    us.admin.set_topic_configs(fresh_topic, {"retention.ms": "1"})
    try:
        wait_for(lambda: us.admin.start_offsets(fresh_topic) == {0: 10}, "the retention")
    finally:
        us.admin.set_topic_configs(fresh_topic, {"retention.ms": None})
    wait_for(
        lambda: us.admin.topic_config(fresh_topic, "retention.ms") == "604800000",
        "the default retention",
    )


def test_added_partitions_are_replicated(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    create_replicated_topic(lab, fresh_topic, 10)

    us.admin.add_partitions(fresh_topic, 3)
    produce(us.librdkafka(), fresh_topic, Load(5, partition=2))

    wait_for(lambda: eu.admin.partition_count(f"us.{fresh_topic}") == 3, "three partitions")
    wait_for(lambda: count_copies(lab, fresh_topic) == 15, "the copies")
    assert eu.admin.end_offsets(f"us.{fresh_topic}") == {0: 10, 1: 0, 2: 5}


def test_foreign_records_are_only_on_target(lab: Lab, fresh_topic: str) -> None:
    create_replicated_topic(lab, fresh_topic, 10)

    delivered = lab_faults.foreign_records(lab, US_EU, fresh_topic, 3, partition=0)

    assert (delivered.count, delivered.next_offsets) == (3, {0: 13})
    assert count_copies(lab, fresh_topic) == 13
    assert lab.cluster("us").admin.end_offsets(fresh_topic) == {0: 10}


def test_recreated_topic_is_empty(lab: Lab, fresh_topic: str) -> None:
    us = lab.cluster("us")
    create_replicated_topic(lab, fresh_topic, 10, partitions=2)

    us.admin.recreate_topic(fresh_topic)

    assert us.admin.end_offsets(fresh_topic) == {0: 0, 1: 0}


@pytest.mark.long
def test_one_of_two_tasks_fails_and_is_repaired(lab: Lab, fresh_topic: str) -> None:
    create_replicated_topic(lab, fresh_topic, 40, partitions=4)
    try:
        failed = lab_faults.fail_mirror_task(lab, US_EU, fresh_topic, partition=1)
        states = task_states(lab, US_EU)
    finally:
        lab_faults.repair_mirror_task(lab, US_EU, fresh_topic)

    sources = {task: state for task, state in states.items() if "MirrorSource" in task}
    assert sorted(sources.values()) == ["FAILED", "RUNNING"]
    assert [task for task, state in sources.items() if state == "FAILED"] == list(failed)
    assert failed_tasks(lab, US_EU) == ()
    wait_for(lambda: count_copies(lab, fresh_topic) >= 41, "the record that was too large")


def test_group_commits_read_records(lab: Lab, fresh_topic: str) -> None:
    us = lab.cluster("us")
    us.admin.create_topic(fresh_topic)
    produce(us.librdkafka(), fresh_topic, Load(20))

    assert consume_and_commit(us.librdkafka(), fresh_topic, f"g-{fresh_topic}", 12) == {0: 12}
    assert us.admin.group_offsets(f"g-{fresh_topic}") == {(fresh_topic, 0): 12}

    commit(us.librdkafka(), fresh_topic, f"g-{fresh_topic}", {0: 3})
    assert us.admin.group_offsets(f"g-{fresh_topic}") == {(fresh_topic, 0): 3}


@pytest.mark.parametrize(("abort", "committed"), [(False, 5), (True, 0)], ids=["commit", "abort"])
def test_transaction_marker_takes_one_offset(
    lab: Lab, fresh_topic: str, *, abort: bool, committed: int
) -> None:
    us = lab.cluster("us")
    us.admin.create_topic(fresh_topic)

    produce_in_transaction(
        us.librdkafka(), fresh_topic, Load(5), transactional_id=fresh_topic, abort=abort
    )

    # The coordinator responds before it has written the marker.
    wait_for(lambda: us.admin.end_offsets(fresh_topic) == {0: 6}, "the marker")
    # The consumer reports the end of the partition at the last stable offset.
    found = consume(us.librdkafka(), [fresh_topic], 6, isolation="read_committed", until_end=True)
    assert len(found) == committed


def test_open_transaction_hides_records_until_commit(lab: Lab, fresh_topic: str) -> None:
    us = lab.cluster("us")
    us.admin.create_topic(fresh_topic)

    def committed() -> int:
        properties, isolation = us.librdkafka(), "read_committed"
        return len(consume(properties, [fresh_topic], 9, isolation=isolation, until_end=True))

    with OpenTransaction(us.librdkafka(), fresh_topic, transactional_id=fresh_topic) as pending:
        pending.send(Load(4))
        assert us.admin.end_offsets(fresh_topic) == {0: 4}
        assert committed() == 0
        pending.commit()
    wait_for(lambda: committed() == 4, "the marker")
