"""Flows without positions: progress and removed copies by time."""

from typing import cast

from fake_clusters import LoggedCluster

from mm2slo_audit.audit_options import override_max_pending
from mm2slo_audit.scope.audit_units import AuditUnit, Feed
from mm2slo_audit.scope.cluster_survey import add_offsets_by_time
from mm2slo_audit.scope.flow_topic_reader import CommitsAndSyncs
from mm2slo_audit.scope.scope_assembly import FeedReading, UnitReading, assemble_scope
from mm2slo_core.audit.audit_scope import Comparison, UnitScope, Window
from mm2slo_core.config.config_loader import load_config
from mm2slo_kafka.cluster_client import ClusterClient

SECOND = 1_000
PRESENT = 1_000.0
"""Request time of the sources' end offsets, epoch s."""
CONFIG = load_config(
    """
    clusters: {us: {bootstrap_servers: "us:1"}, eu: {bootstrap_servers: "eu:1"}}
    flows: [{flow: us->eu, engine: dual-produce, topics: [t], audit: {max_pending: 100s}}]
    """
)
EACH_SECOND = range(0, 1_000 * SECOND, SECOND)
"""Timestamps of a partition; its offsets are seconds."""


def scope(us: LoggedCluster, eu: LoggedCluster, max_pending: float | None = None) -> UnitScope:
    (flow,) = (CONFIG if max_pending is None else override_max_pending(CONFIG, max_pending)).flows
    feed = Feed(flow, "t")
    unit = AuditUnit("eu", "t", (feed,))
    clients = {"us": cast("ClusterClient", us), "eu": cast("ClusterClient", eu)}
    partitions = len(eu.logs)
    reading = FeedReading(feed, len(us.logs), us.readings(PRESENT), CommitsAndSyncs(), None)
    reading = add_offsets_by_time(reading, unit, partitions, eu.readings(), clients)
    read = UnitReading(unit, partitions, eu.readings(), (reading,))
    return assemble_scope(read, Window(0, 1_000 * SECOND)).scope


def positions(found: UnitScope) -> list[int | None]:
    return [each.next_offset for each in found.flows[0].partitions]


def known_from(found: UnitScope) -> list[int]:
    return [each.known_from for each in found.flows[0].partitions]


def test_offsets_by_time_records_older_than_max_pending_are_due() -> None:
    us = LoggedCluster("t", [(0, EACH_SECOND)] * 2)
    eu = LoggedCluster("t", [(0, EACH_SECOND[:900]), (0, EACH_SECOND[:700])])
    assert positions(scope(us, eu)) == [799, 599]
    # An overridden max_pending applies to progress as well.
    assert positions(scope(us, eu, 300.0)) == [599, 399]


def test_offsets_by_time_future_timestamp_counts_as_now() -> None:
    us = LoggedCluster("t", [(0, EACH_SECOND)])
    eu = LoggedCluster("t", [(0, [*EACH_SECOND[:900], 50_000 * SECOND])])
    assert positions(scope(us, eu)) == [900]


def test_offsets_by_time_removed_copies_are_not_judged() -> None:
    us = LoggedCluster("t", [(0, EACH_SECOND)] * 2)
    eu = LoggedCluster("t", [(200, EACH_SECOND[200:]), (0, EACH_SECOND)])
    assert known_from(scope(us, eu)) == [200, 0]


def test_offsets_by_time_different_partition_counts_use_latest_start() -> None:
    us = LoggedCluster("t", [(0, EACH_SECOND)] * 3)
    eu = LoggedCluster("t", [(0, EACH_SECOND), (70, EACH_SECOND[400:])])
    found = scope(us, eu)
    assert found.comparison is Comparison.KEYS
    assert known_from(found) == [400] * 3
    eu = LoggedCluster("t", [(0, EACH_SECOND), (0, EACH_SECOND)])
    assert known_from(scope(us, eu)) == [0] * 3


def test_offsets_by_time_empty_partition_judges_nothing() -> None:
    us = LoggedCluster("t", [(0, EACH_SECOND)] * 3)
    eu = LoggedCluster("t", [(70, EACH_SECOND[400:]), (30, [])])
    assert known_from(scope(us, eu)) == [1_000] * 3
