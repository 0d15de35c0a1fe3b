"""Commits of a topic that was deleted and created again."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from fake_clusters import LoggedCluster

from mm2slo_audit.scope import flow_topic_reader
from mm2slo_audit.scope.cluster_survey import find_predating_commits
from mm2slo_audit.scope.flow_topic_reader import read_commits
from mm2slo_audit.scope.scope_assembly import OffsetReadings
from mm2slo_audit.scope.sync_history import Commit
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.tailed_topic import TailRecord

KEY = TopicPartition("t", 0)
FLUSH_INTERVAL = 60.0
SECOND = 1_000
HUNDRED_FROM_1000 = range(1_000 * SECOND, 1_100 * SECOND, SECOND)
"""Timestamps of a log with a record each second from 1,000 s on."""


def is_dropped(
    commit: Commit,
    log: tuple[int, Sequence[int]] = (0, HUNDRED_FROM_1000),
    *,
    window_start: float = 0,
) -> bool:
    cluster = LoggedCluster("t", [log])
    read = cluster.readings()
    first = cluster.offsets_at([KEY], window_start)
    readings = OffsetReadings(starts=read.starts, ends=read.ends, at=first.offsets)
    found = find_predating_commits(
        cast("ClusterClient", cluster),
        {KEY: commit},
        readings,
        Window(round(window_start * SECOND), 10_000 * SECOND),
        FLUSH_INTERVAL,
    )
    return found == {KEY}


def test_commit_older_than_first_record_is_of_an_earlier_topic() -> None:
    assert is_dropped(Commit(50, 999.0))
    assert not is_dropped(Commit(50, 1_050.0))


def test_commit_older_than_window_is_unknown_for_records_of_window() -> None:
    # The flow committed nothing since: no record of the window was committed in this log.
    assert is_dropped(Commit(50, 1_010.0), window_start=1_020)
    # It did: records of the window start above the position.
    assert not is_dropped(Commit(15, 1_016.0), window_start=1_020)


def test_commit_within_window_of_older_log_needs_no_lookup() -> None:
    assert not is_dropped(Commit(50, 1_055.0), window_start=1_020)


def test_commit_outside_log_is_not_judged() -> None:
    # Retention removed what was committed, or the log has not reached the position.
    assert not is_dropped(Commit(50, 999.0), (51, HUNDRED_FROM_1000))
    assert not is_dropped(Commit(100, 999.0))


def test_record_of_a_clock_ahead_shows_no_earlier_topic() -> None:
    ahead = 20_000 * SECOND
    assert not is_dropped(Commit(50, 1_050.0), (0, [ahead, *HUNDRED_FROM_1000]))
    among = [*HUNDRED_FROM_1000[:30], ahead, *HUNDRED_FROM_1000[30:]]
    assert not is_dropped(Commit(100, 1_100.0), (0, among), window_start=1_200)


def test_commits_of_many_young_partitions_are_kept() -> None:
    first = [1_000 + 60 * at for at in range(300)]
    cluster = LoggedCluster("t", [(0, [at * SECOND, 30_000 * SECOND]) for at in first])
    found = find_predating_commits(
        cast("ClusterClient", cluster),
        {TopicPartition("t", number): Commit(1, at + 30.0) for number, at in enumerate(first)},
        cluster.readings(),
        Window(0, 40_000 * SECOND),
        FLUSH_INTERVAL,
    )
    assert found == set()
    assert len(cluster.requests) <= 201


def test_commit_of_acknowledgements_before_recreation_is_dropped() -> None:
    # Tasks write what was acknowledged in the last flush interval, when the topic is already
    # another one. An earlier commit shows that there was an earlier topic.
    earlier = Commit(40, 990.0)
    assert is_dropped(Commit(50, 1_020.0, earlier))
    assert not is_dropped(Commit(50, 1_020.0))
    # A flush interval later it is of the new one.
    assert not is_dropped(Commit(50, 1_061.0, earlier))


def test_earlier_commit_below_log_start_shows_no_earlier_topic() -> None:
    assert not is_dropped(Commit(150, 1_020.0, Commit(90, 990.0)), (100, HUNDRED_FROM_1000))


def test_commit_has_the_one_before_it_unless_the_flow_went_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = load_config(
        "clusters: {us: {bootstrap_servers: 'us:1'}, eu: {bootstrap_servers: 'eu:1'}}\n"
        "flows: [{flow: us->eu}]"
    )
    (flow,) = config.flows
    source = {"cluster": "us", "partition": 0, "topic": "t"}
    key = json.dumps([flow.connect.source_connector, source]).encode()

    def newest(*offsets: int) -> Commit:
        records = [
            TailRecord(0, at, at * SECOND, key, json.dumps({"offset": offset}).encode(), None)
            for at, offset in enumerate(offsets)
        ]
        monkeypatch.setattr(flow_topic_reader, "read_to_end", lambda *_read, **_limits: records)
        clients: dict[str, Any] = {"eu": None}
        return read_commits(flow, clients, ["t"])[KEY]

    assert newest(10, 20, 30) == Commit(30, 2.0, Commit(20, 1.0))
    assert newest(30, 10) == Commit(10, 1.0)
    assert newest(30, 10, 20) == Commit(20, 2.0, Commit(10, 1.0))
