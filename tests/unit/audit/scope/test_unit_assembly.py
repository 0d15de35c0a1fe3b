"""Scopes of topics with several flows, and of compacted topics."""

from __future__ import annotations

from fake_clusters import LoggedCluster

from mm2slo_audit.scope.audit_units import Feed, Unit
from mm2slo_audit.scope.cluster_topics import TopicSettings
from mm2slo_audit.scope.commits_and_syncs import CommitsAndSyncs
from mm2slo_audit.scope.unit_assembly import FeedReading, UnitReading, assemble_scope
from mm2slo_core.audit.audit_scope import Comparison, UnitScope, Window
from mm2slo_core.audit.record_identity import Identity
from mm2slo_core.config import load_config

CONFIG = load_config(
    """
    clusters:
      us: {bootstrap_servers: "us:1"}
      ap: {bootstrap_servers: "ap:1"}
      eu: {bootstrap_servers: "eu:1"}
    defaults: {policy: {kind: identity}, topics: [t]}
    flows:
      - {flow: us->eu, audit: {max_pending: 90s, identity: {ignored_headers: [trace]}}}
      - {flow: ap->eu, audit: {max_pending: 60s, identity: {value: false}}}
    """
)


DEFAULTS = TopicSettings()


def scope(target: TopicSettings = DEFAULTS, source: TopicSettings = DEFAULTS) -> UnitScope:
    cluster = LoggedCluster("t", [(0, range(10))])
    feeds = tuple(Feed(flow, "t") for flow in CONFIG.flows)
    read = UnitReading(
        Unit("eu", "t", feeds),
        1,
        cluster.readings(),
        tuple(
            FeedReading(each, 1, cluster.readings(), CommitsAndSyncs(), None, source)
            for each in feeds
        ),
        target,
    )
    return assemble_scope(read, Window(0, 10)).scope


def test_assemble_scope_shared_topic_merges_identities_and_uses_lowest_max_pending() -> None:
    found = scope()
    assert found.identity == Identity(value=False, ignored_headers=("trace",))
    assert found.max_pending == 60_000
    assert found.comparison is Comparison.RECORDS
    assert found.tombstones_kept == 0


def test_assemble_scope_compacted_topic_compares_latest() -> None:
    day = 86_400_000
    kept = TopicSettings(tombstones_kept=day)
    assert scope(kept, TopicSettings(compacted=True)).comparison is Comparison.LATEST
    found = scope(TopicSettings(compacted=True, tombstones_kept=day))
    assert (found.comparison, found.tombstones_kept) == (Comparison.LATEST, day)
    assert scope(kept).tombstones_kept == 0
