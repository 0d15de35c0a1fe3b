"""Scopes of audits read from the lab: positions, windows, expiry, unauditable topics."""

import time

import pytest
from flow_checks import create_replicated_topic
from topic_reader import count_copies

from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_audit.scope.scope_assembly import RunScope
from mm2slo_audit.scope.scope_reader import read_scopes
from mm2slo_core.audit.audit_scope import Comparison, Cut, NotAuditedReason, TimestampType, Window
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.user_errors import UserError
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]


def window(seconds: float = 600.0) -> Window:
    now = time.time()
    return Window(round((now - seconds) * 1000), round((now + 1) * 1000))


def scope_of(lab: Lab, *topics: str, over: Window | None = None, flow: str = "us->eu") -> RunScope:
    config = load_config(lab.config_yaml())
    with open_clients(config) as clients:
        return read_scopes(config, [flow], topics, over or window(), clients)


def is_committed(taken: RunScope) -> bool:
    partitions = taken.scopes[0].flows[0].partitions
    return all(each.next_offset == each.end for each in partitions)


def test_scope_of_replicated_topic_ends_at_position(lab: Lab, fresh_topic: str) -> None:
    create_replicated_topic(lab, fresh_topic, 300, partitions=3)
    wait_for(lambda: is_committed(scope_of(lab, fresh_topic)), "commits of all records")
    taken = scope_of(lab, fresh_topic)
    assert taken.not_audited == ()
    (scope,) = taken.scopes
    assert scope.target_topic == f"us.{fresh_topic}"
    assert scope.comparison is Comparison.RECORDS
    assert scope.target_time is TimestampType.CREATE
    assert scope.max_pending == 300_000
    (flow,) = scope.flows
    assert (flow.flow.label, flow.source_topic) == ("us->eu", fresh_topic)
    assert flow.has_positions
    assert sum(each.end for each in flow.partitions) == 300
    assert [each.end for each in scope.partitions] == [each.end for each in flow.partitions]
    for each in flow.partitions:
        assert (each.log_start, each.read_from, each.known_from, each.expired) == (0, 0, 0, 0)
    assert all(each.auditable_from == 0 for each in scope.partitions)
    assert abs(time.time() * 1000 - scope.taken_at) < 30_000
    assert taken.planned == 600


def test_scope_counts_expired_records(faulty_lab: Lab, fresh_topic: str) -> None:
    lab, topic = faulty_lab, fresh_topic
    us = lab.cluster("us")
    create_replicated_topic(lab, topic, 50)
    wait_for(lambda: position(lab, topic) == 50, "the commit of all records")
    lab.mm2.stop()
    produce(us.librdkafka(), topic, Load(100, first=50))
    us.admin.delete_records(topic, {0: 90})
    (scope,) = scope_of(lab, topic).scopes
    (partition,) = scope.flows[0].partitions
    assert (partition.log_start, partition.end, partition.next_offset) == (90, 150, 50)
    assert partition.expired == 40
    # A window before the oldest remaining record is expired.
    past = Window(scope.window.start - 1000, scope.window.start)
    (expired,) = scope_of(lab, topic, over=past).not_audited
    assert expired.reason is NotAuditedReason.EXPIRED

    lab.mm2.start()
    wait_for(lambda: count_copies(lab, topic) == 110, "the 60 remaining records")
    wait_for(lambda: position(lab, topic) > 90, "a position beyond the gap")
    # The source records of copies below offset 90 are deleted. The sync of offset 90, which shows
    # it, is written to the other cluster than the position.
    wait_for(
        lambda: scope_of(lab, topic).scopes[0].partitions[0].auditable_from == 50,
        "the sync beyond the gap",
    )
    (scope,) = scope_of(lab, topic).scopes
    (partition,) = scope.flows[0].partitions
    assert partition.expired == 40
    assert scope.partitions[0].auditable_from == 50


def position(lab: Lab, topic: str) -> int:
    """The next offset of the only partition that MirrorMaker 2 has committed; 0 without one."""
    return scope_of(lab, topic).scopes[0].flows[0].partitions[0].next_offset or 0


def test_scope_has_no_position_from_commit_of_earlier_topic(
    faulty_lab: Lab, fresh_topic: str
) -> None:
    lab, topic = faulty_lab, fresh_topic
    us = lab.cluster("us")
    create_replicated_topic(lab, topic, 50)
    wait_for(lambda: position(lab, topic) == 50, "the commit of all records")
    lab.mm2.stop()
    us.admin.delete_topic(topic)
    wait_for(lambda: topic not in us.admin.topics(), "the deletion")
    us.admin.create_topic(topic, 1)
    produce(us.librdkafka(), topic, Load(100))
    (scope,) = scope_of(lab, topic).scopes
    (partition,) = scope.flows[0].partitions
    assert (partition.end, partition.next_offset) == (100, None)
    # MirrorMaker 2 continues at its old position: then the first 50 records are lost.
    lab.mm2.start()
    wait_for(lambda: position(lab, topic) == 100, "a commit of the new topic")
    assert count_copies(lab, topic) == 100


def test_scope_of_window_starts_at_its_first_offset(lab: Lab, fresh_topic: str) -> None:
    create_replicated_topic(lab, fresh_topic, 40)
    middle = int(time.time()) + 1  # later than all records before
    produce(lab.cluster("us").librdkafka(), fresh_topic, Load(60, first=40, timestamp=middle))
    wait_for(
        lambda: count_copies(lab, fresh_topic) == 100 and time.time() > middle,
        "100 copies, and the start of the window",
    )
    (scope,) = scope_of(lab, fresh_topic, over=Window(middle * 1000, middle * 1000 + 60_000)).scopes
    source, target = scope.flows[0].partitions[0], scope.partitions[0]
    assert (source.read_from, source.end) == (40, 100)
    assert (target.read_from, target.end) == (40, 100)


def test_scope_comparison_follows_topic_settings(lab: Lab, fresh_topic: str) -> None:
    eu = lab.cluster("eu")
    compacted, stamped, wider = (f"{fresh_topic}-{kind}" for kind in ("compact", "stamp", "wide"))
    create_replicated_topic(lab, compacted, 5, configs={"cleanup.policy": "compact"})
    eu.admin.create_topic(f"us.{stamped}", 1, {"message.timestamp.type": "LogAppendTime"})
    create_replicated_topic(lab, stamped, 5)
    eu.admin.create_topic(f"us.{wider}", 3)
    create_replicated_topic(lab, wider, 5)
    taken = scope_of(lab, compacted, stamped, wider)
    found = {scope.target_topic: scope for scope in taken.scopes}
    assert found[f"us.{compacted}"].comparison is Comparison.LATEST
    assert found[f"us.{wider}"].comparison is Comparison.KEYS
    of_stamped = found[f"us.{stamped}"]
    assert of_stamped.comparison is Comparison.RECORDS
    assert of_stamped.target_time is TimestampType.LOG_APPEND
    assert not of_stamped.identity.timestamp
    assert of_stamped.bucketed
    assert of_stamped.flows[0].partitions[0].cuts[0] == Cut(0, 0)
    assert found[f"us.{compacted}"].identity.timestamp
    assert found[f"us.{compacted}"].tombstones_kept == 86_400_000
    assert [scope.index for scope in taken.scopes] == [0, 1, 2]


def test_scope_names_unauditable_topics_with_reason(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    empty, orphan = f"{fresh_topic}-empty", f"{fresh_topic}-orphan"
    us.admin.create_topic(empty, 1)
    eu.admin.create_topic(f"us.{empty}", 1)
    eu.admin.create_topic(f"us.{orphan}", 1)
    uncopied = f"{fresh_topic}-uncopied"
    us.admin.create_topic(uncopied, 1)
    produce(us.librdkafka(), uncopied, Load(3))
    every = {each.target_topic: each for each in scope_of(lab).not_audited}
    assert every[f"us.{empty}"].reason is NotAuditedReason.EMPTY
    assert every[f"us.{orphan}"].reason is NotAuditedReason.SOURCE_MISSING
    assert every[f"us.{orphan}"].detail == f"{orphan} does not exist on us, or is not visible"
    if f"us.{uncopied}" in every:  # MM2 finds new topics after a second
        assert every[f"us.{uncopied}"].reason is NotAuditedReason.TARGET_MISSING


def test_scope_of_invalid_window_or_topic_raises_user_error(lab: Lab) -> None:
    ahead = round((time.time() + 3600) * 1000)
    with pytest.raises(
        UserError,
        match=r"the window starts in the future, at .*Z; expected a window that has started",
    ):
        scope_of(lab, over=Window(ahead, ahead + 1))
    with pytest.raises(UserError, match="topic 'nowhere' is not copied by these flows"):
        scope_of(lab, "nowhere")
    with pytest.raises(UserError, match="'us->ap' is not a configured flow"):
        scope_of(lab, flow="us->ap")
