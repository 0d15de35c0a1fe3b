"""Scopes of topics with several flows, of compacted topics, and the verdicts at a position."""

from fake_clusters import LoggedCluster
from reference_audit import judge

from mm2slo_audit.scope.audit_units import AuditUnit, Feed
from mm2slo_audit.scope.cluster_readings import TopicSettings
from mm2slo_audit.scope.flow_topic_reader import CommitsAndSyncs
from mm2slo_audit.scope.scope_assembly import FeedReading, UnitReading, assemble_scope
from mm2slo_audit.scope.sync_history import Commit, SyncHistory, TimedSync
from mm2slo_core.audit.audit_conclusion import Conclusion, conclude
from mm2slo_core.audit.audit_scope import AuditRecord, Comparison, UnitScope, Window
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import TopicPartition

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
        AuditUnit("eu", "t", feeds),
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


SENT = range(1_000, 11_000, 1_000)
"""Timestamps of ten records in each partition."""
WINDOW = Window(0, 20_000)
TAKEN_AT = 100.0
"""When all of them are older than `max_pending`, epoch s."""


FIRST_SYNC = SyncHistory()
FIRST_SYNC.add(TimedSync(0, 0, 1.0))


def verdicts(
    copied: tuple[int, ...], *commits: int, missing: int = 0, syncs: SyncHistory = FIRST_SYNC
) -> tuple[dict[Verdict, int], Conclusion]:
    """The audit of a topic of which each partition has so many copies and such a commit.

    *missing*: how many of the first of these copies are not on the target.
    """
    feed = Feed(CONFIG.flows[1], "t")
    source = LoggedCluster("t", [(0, SENT)] * len(copied))
    target = LoggedCluster("t", [(0, SENT[missing:count]) for count in copied])
    # Heartbeats and canaries arrive, by another task.
    known = {TopicPartition("heartbeats", 0): Commit(5_000, TAKEN_AT)}
    known |= {TopicPartition("t", n): Commit(each, TAKEN_AT) for n, each in enumerate(commits)}
    internals = CommitsAndSyncs(known, {key: syncs for key in known if key.topic == "t"})
    reading = FeedReading(feed, len(copied), source.readings(TAKEN_AT), internals, None)
    unit = UnitReading(
        AuditUnit("eu", "t", (feed,)), len(copied), target.readings(TAKEN_AT), (reading,)
    )
    records = [
        AuditRecord(0, 0, side, partition, at - first, SENT[at], 100 * partition + at, None, 1)
        for partition, count in enumerate(copied)
        for side, first, end in ((Side.SOURCE, 0, len(SENT)), (Side.TARGET, missing, count))
        for at in range(first, end)
    ]
    outcome = judge(records, (), assemble_scope(unit, WINDOW).scope, Sample(1.0))
    return {verdict: n for verdict, n in outcome.counts.items() if n}, conclude([outcome], ())


def test_records_of_idle_topic_are_lost_once_its_position_passed_them() -> None:
    counts, conclusion = verdicts((7,), 6)
    assert counts == {Verdict.MATCHED: 7, Verdict.OVERDUE: 3}
    assert conclusion.complete_up_to == SENT[7]
    counts, conclusion = verdicts((7,), 9)
    assert counts == {Verdict.MATCHED: 7, Verdict.LOST: 3}
    assert conclusion.complete_up_to == WINDOW.end


def test_records_of_failed_task_are_not_lost_while_another_task_progresses() -> None:
    counts, conclusion = verdicts((4, 10), 3, 9)
    assert counts == {Verdict.MATCHED: 14, Verdict.OVERDUE: 6}
    assert conclusion.exit_code == 1
    assert conclusion.complete_up_to == SENT[4]


def test_records_before_first_copy_are_lost() -> None:
    # The flow dropped them, or started after them: the first sync is that of the first copy.
    late = SyncHistory()
    late.add(TimedSync(4, 0, 1.0))
    counts, conclusion = verdicts((10,), 9, missing=4, syncs=late)
    assert counts == {Verdict.MATCHED: 6, Verdict.LOST: 4}
    assert conclusion.exit_code == 1
    # Without a sync the commit alone says that they were read.
    counts, _conclusion = verdicts((10,), 9, missing=4, syncs=SyncHistory())
    assert counts == {Verdict.MATCHED: 6, Verdict.LOST: 4}
