"""Events of the canary process in, settled outcomes out."""

import pytest
from flow_observations import Scene

from mm2slo_core.indicators.canary_rules import CanaryRules
from mm2slo_core.indicators.sli_counters import Sli, SliCount, SliKey
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    CanaryEvent,
    EarlierCanary,
    InstanceNamed,
    Produced,
    ProduceFailed,
    ReadUpTo,
    RestoreFinished,
    Scheduled,
    SourceTopicRecreated,
    StageFailed,
    StageSucceeded,
    TargetReadRestarted,
)
from mm2slo_exporter.state.canary_tracker import CanaryTracker

FLOW = "us->eu"
PAIR = TopicPair("mm2slo.canary", "us.mm2slo.canary", TopicRole.CANARY)
AVAILABILITY, COMPLETENESS = SliKey(Sli.AVAILABILITY), SliKey(Sli.COMPLETENESS)


class Canaries:
    """A tracker whose process finished restoring at 100 s, without earlier canaries."""

    def __init__(self, *, confirm_losses: bool = False, restored: bool = True) -> None:
        self.scene = Scene()
        self.log = self.scene.add(PAIR.source, role=TopicRole.CANARY)
        rules = CanaryRules(own_topic=True, confirm_losses=confirm_losses)
        self.tracker = CanaryTracker(rules, started_at=99.0)
        self.ledger = self.tracker.ledger
        if restored:
            self.look(100.0, RestoreFinished(FLOW, 100.0))

    def look(self, at: float, *events: CanaryEvent) -> None:
        self.tracker.observe(self.scene.look(at, *events), PAIR)

    def count(self, key: SliKey) -> SliCount:
        return self.ledger.counters[key]


def sent(sequence: int, at: float) -> tuple[CanaryEvent, CanaryEvent]:
    return (
        Scheduled(FLOW, sequence, 0, at),
        Produced(FLOW, sequence, 0, sequence, at + 0.01),
    )


def alive(at: float, offset: int = 0) -> CanaryEvent:
    return ReadUpTo(FLOW, 0, offset, at)


def test_arrival_before_deadline_is_good() -> None:
    canaries = Canaries()
    canaries.look(105.0, *sent(1, 101.0), Arrived(FLOW, 1, 0, 101.5))
    assert canaries.count(AVAILABILITY) == SliCount(1, 1, 0)
    assert canaries.count(COMPLETENESS) == SliCount(1, 1, 0)
    assert canaries.ledger.last_arrival_at == 101.5
    assert canaries.tracker.latencies.read().total_seconds == 0.5


def test_canary_due_while_receiving_fails_is_unknown() -> None:
    canaries = Canaries()
    refused = StageFailed(FLOW, "eu", "canary_receive", "authorization", "no", 102.0)
    canaries.look(102.0, *sent(1, 101.0), refused)
    assert canaries.ledger.silence(140.0) is None
    canaries.look(162.0)
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)
    assert canaries.count(COMPLETENESS) == SliCount()
    # Authorized again, it reads the record: complete, but whether it was late stays unknown.
    working = StageSucceeded(FLOW, "eu", "canary_receive", 170.0)
    canaries.look(170.0, Arrived(FLOW, 1, 0, 170.0), working, *sent(2, 169.0))
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)
    assert canaries.count(COMPLETENESS) == SliCount(1, 1, 0)
    assert canaries.ledger.silence(175.0) == pytest.approx(5.0)
    canaries.look(230.0, alive(230.0))
    assert canaries.count(AVAILABILITY).unknown == 2


def test_deadline_settles_when_target_was_read_up_to_it() -> None:
    canaries = Canaries()
    canaries.look(102.0, *sent(1, 101.0), alive(101.9))
    canaries.look(170.0)  # nothing was read since: the canary may have arrived
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 0)
    canaries.look(171.0, Arrived(FLOW, 1, 0, 110.0), alive(170.9))
    assert canaries.count(AVAILABILITY) == SliCount(1, 1, 0)
    canaries.look(172.0, *sent(2, 171.0))
    canaries.look(240.0, StageSucceeded(FLOW, "eu", "canary_receive", 231.5))
    assert canaries.count(AVAILABILITY) == SliCount(1, 2, 0)


def test_failed_produce_is_unknown_at_deadline() -> None:
    canaries = Canaries()
    canaries.look(102.0, Scheduled(FLOW, 1, 0, 101.0), ProduceFailed(FLOW, 1, "timeout", 102.0))
    canaries.look(170.0, alive(170.0))
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)
    assert canaries.count(COMPLETENESS) == SliCount(0, 0, 1)


def test_loss_requires_proven_position_and_target_read_beyond_it() -> None:
    canaries = Canaries()
    canaries.log.end, canaries.log.target_end = 5, 4
    canaries.look(102.0, *sent(1, 101.0))
    canaries.look(165.0, alive(165.0, 3))
    assert canaries.count(AVAILABILITY) == SliCount(0, 1, 0)
    canaries.log.committed = 4
    canaries.look(170.0, alive(170.0, 3))
    canaries.look(175.0, alive(175.0, 3))
    assert canaries.ledger.totals.lost == 0
    canaries.look(180.0, alive(180.0, 4))
    assert canaries.ledger.totals.lost == 1
    assert canaries.count(COMPLETENESS) == SliCount(0, 1, 0)
    assert canaries.ledger.pending == 0


def test_offset_sync_proves_position_and_interpolation_does_not() -> None:
    canaries = Canaries()
    canaries.log.live(9, 9)  # the sync of record 0: later positions are interpolated
    canaries.look(102.0, *sent(1, 101.0))
    for at in (165.0, 170.0, 175.0):
        canaries.look(at, alive(at, 9))
    assert canaries.ledger.totals.lost == 0
    assert canaries.log.sync is not None
    canaries.log.sync = canaries.log.sync._replace(upstream=1)
    for at in (180.0, 185.0):
        canaries.look(at, alive(at, 9))
    assert canaries.ledger.totals.lost == 1


def test_canary_removed_by_retention_is_expired() -> None:
    canaries = Canaries()
    canaries.log.end = 10
    canaries.log.committed = 0
    canaries.look(102.0, *sent(5, 101.0))
    canaries.look(165.0, alive(165.0))
    canaries.log.start = 8
    for at in (170.0, 175.0, 180.0, 185.0):
        canaries.look(at, alive(at))
    assert canaries.ledger.totals.expired == 1
    assert canaries.count(COMPLETENESS) == SliCount(0, 0, 0)


def test_loss_on_compacted_carrier_is_confirmed_by_lookup() -> None:
    canaries = Canaries(confirm_losses=True)
    canaries.log.end = 5
    canaries.look(102.0, *sent(1, 101.0))
    canaries.log.committed = 4
    for at in (165.0, 170.0, 175.0):
        canaries.look(at, alive(at))
    assert [suspect.sequence for suspect in canaries.ledger.suspects()] == [1]
    canaries.ledger.looked_up(1, present=True)
    assert canaries.ledger.totals.lost == 1


@pytest.mark.parametrize("side", ["source_readable", "target_readable"])
def test_canary_due_while_cluster_is_unreadable_is_unknown(side: str) -> None:
    canaries = Canaries()
    canaries.look(101.0, *sent(1, 101.0), alive(101.0))
    setattr(canaries.scene, side, False)
    canaries.look(105.0, alive(105.0))
    canaries.look(165.0, alive(165.0))
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)
    setattr(canaries.scene, side, True)
    canaries.look(166.0, alive(166.0))
    canaries.look(170.0, *sent(2, 168.0), Arrived(FLOW, 2, 0, 169.0))
    assert canaries.count(AVAILABILITY) == SliCount(1, 1, 1)


def earlier_canary(
    sequence: int, at: float, newest_arrived: int | None, floor: int | None = 1
) -> CanaryEvent:
    return EarlierCanary(FLOW, sequence, 0, sequence, at, floor, newest_arrived)


def test_start_while_target_is_down_counts_no_earlier_canaries() -> None:
    canaries = Canaries(restored=False)
    earlier = [earlier_canary(sequence, 50.0 + sequence, 8, floor=9) for sequence in range(9)]
    canaries.scene.target_readable = False
    canaries.look(130.0, *earlier, *sent(1_000, 129.0))
    canaries.scene.target_readable = True
    history = [Arrived(FLOW, sequence, 0, 160.0) for sequence in range(9)]
    canaries.look(161.0, *history, Arrived(FLOW, 1_000, 0, 160.0), RestoreFinished(FLOW, 160.5))
    totals = canaries.ledger.totals
    assert (totals.sent, totals.received, totals.duplicates) == (1, 1, 0)
    assert canaries.count(COMPLETENESS) == SliCount(1, 1, 0)
    # No process sent the 70 that were due from 59 to 128 s.
    assert canaries.count(AVAILABILITY) == SliCount(1, 1, 70)
    # It arrived at an unknown time before 160 s.
    assert canaries.tracker.latencies.read().total_seconds == 0.0
    canaries.look(170.0, *sent(1_001, 165.0), Arrived(FLOW, 1_001, 0, 165.5))
    assert canaries.tracker.latencies.read().total_seconds == 0.5


def test_restart_restores_pending_canaries() -> None:
    canaries = Canaries(restored=False)
    canaries.look(
        200.0,
        # 1 and 2 had arrived when 4 was sent; 3 arrived during the restart, 4 is pending.
        *(
            earlier_canary(sequence, 190.0 + sequence, newest_arrived=2)
            for sequence in (1, 2, 3, 4)
        ),
        *(Arrived(FLOW, sequence, 0, 200.0) for sequence in (1, 2, 3)),
    )
    assert canaries.ledger.totals.received == 0
    canaries.look(201.0, RestoreFinished(FLOW, 200.5))
    assert canaries.ledger.totals.received == 1
    assert canaries.ledger.totals.duplicates == 0
    assert canaries.count(AVAILABILITY) == SliCount(1, 1, 0)
    assert canaries.ledger.pending == 1
    canaries.look(203.0, Arrived(FLOW, 4, 0, 202.0))
    assert canaries.count(AVAILABILITY) == SliCount(2, 2, 0)
    assert canaries.ledger.newest_arrived == 4


def test_evidence_before_restore_finished_settles_no_loss() -> None:
    canaries = Canaries()
    canaries.log.end, canaries.log.committed, canaries.log.target_end = 5, 4, 5
    canaries.look(102.0, *sent(1, 101.0))
    canaries.look(165.0, alive(165.0, 0))
    canaries.look(170.0, alive(170.0, 0))
    canaries.tracker.process_started(171.0)
    # The new process has read the arrival and reached the end, but has not finished restoring.
    canaries.look(
        175.0, earlier_canary(1, 101.0, None), Arrived(FLOW, 1, 0, 174.0), alive(174.0, 5)
    )
    canaries.look(180.0, alive(179.0, 5))
    assert canaries.ledger.totals.lost == 0
    canaries.look(185.0, RestoreFinished(FLOW, 184.0))
    canaries.look(190.0, alive(190.0, 5))
    assert canaries.ledger.totals.lost == 0


def test_restarted_process_counts_no_canary_twice() -> None:
    canaries = Canaries()
    canaries.look(105.0, *sent(1, 101.0), Arrived(FLOW, 1, 0, 101.5), *sent(2, 102.0))
    canaries.tracker.process_started(106.0)
    again = (
        earlier_canary(1, 101.0, None),
        earlier_canary(2, 102.0, 1),
        Arrived(FLOW, 1, 0, 108.0),
    )
    canaries.look(109.0, *again, RestoreFinished(FLOW, 108.5))
    totals = canaries.ledger.totals
    assert (totals.received, totals.duplicates, totals.sent) == (1, 0, 2)
    canaries.look(111.0, Arrived(FLOW, 2, 0, 110.0), alive(110.0))
    # Those that were due from 103 to 107 s were not sent.
    assert canaries.count(AVAILABILITY) == SliCount(2, 2, 5)


def test_canary_due_while_process_restarts_is_unknown() -> None:
    canaries = Canaries()
    canaries.look(105.0, *sent(1, 101.0))
    canaries.tracker.process_started(106.0)
    canaries.look(200.0)
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)


def test_canaries_of_recreated_source_topic_are_not_lost() -> None:
    canaries = Canaries()
    canaries.log.end, canaries.log.target_end, canaries.log.committed = 5_000, 5_000, 4_000
    canaries.look(102.0, Scheduled(FLOW, 1, 0, 101.0), Produced(FLOW, 1, 0, 4_500, 101.1))
    canaries.look(165.0, alive(165.0, 5_000))
    assert canaries.ledger.pending == 1  # past its deadline
    canaries.look(166.0, Scheduled(FLOW, 2, 0, 165.1), Produced(FLOW, 2, 0, 4_600, 165.2))
    # Re-created with one record; MirrorMaker 2 is stopped, and its commit is of the old topic.
    canaries.log.end = 1
    canaries.look(171.0, SourceTopicRecreated(FLOW, 170.0))
    canaries.look(172.0, Scheduled(FLOW, 3, 0, 171.1), Produced(FLOW, 3, 0, 0, 171.2))
    assert canaries.ledger.totals.expired == 1
    for at in (235.0, 240.0, 245.0, 250.0):
        canaries.look(at, alive(at, 5_000))
    totals = canaries.ledger.totals
    assert (totals.lost, totals.expired) == (0, 1)
    # 1 was due before the deletion, 2 was deleted before its deadline, 3 is in the new topic.
    assert canaries.count(AVAILABILITY) == SliCount(0, 2, 1)
    assert canaries.count(COMPLETENESS) == SliCount(0, 0, 1)
    assert canaries.ledger.pending == 1
    # MirrorMaker 2 starts again, and its new commit proves that it passed 3.
    canaries.log.committed = 0
    for at in (255.0, 260.0, 265.0):
        canaries.look(at, alive(at, 5_000))
    assert canaries.ledger.totals.lost == 1


def test_losses_are_counted_after_the_copy_was_recreated() -> None:
    canaries = Canaries()
    canaries.log.end, canaries.log.committed, canaries.log.target_end = 10, 4, 5_000
    canaries.look(102.0, *sent(5, 101.0), alive(102.0, 4_000))
    canaries.look(103.0, alive(103.0, 4_000))  # evidence waits for offset 5,000 of the old copy
    canaries.log.target_end = 7
    canaries.look(165.0, TargetReadRestarted(FLOW, 164.0), alive(165.0, 3))
    canaries.log.committed = 9
    canaries.look(170.0, alive(170.0, 3))
    assert canaries.ledger.totals.lost == 0  # not read to its end yet
    canaries.look(175.0, alive(175.0, 7))
    canaries.look(180.0, alive(180.0, 7))
    assert canaries.ledger.totals.lost == 1


def test_canaries_read_again_with_their_copy_are_no_duplicates() -> None:
    """Retention or a truncation overtook the receiver: it starts again at the log start."""
    canaries = Canaries()
    canaries.look(105.0, *sent(1, 101.0), Arrived(FLOW, 1, 0, 101.5), *sent(2, 104.0))
    restarted = TargetReadRestarted(FLOW, 106.0)
    again = (Arrived(FLOW, 1, 0, 106.0, reread=True), Arrived(FLOW, 2, 0, 106.0, reread=True))
    canaries.look(107.0, restarted, *again)
    assert canaries.ledger.totals.duplicates == 0
    assert canaries.count(COMPLETENESS) == SliCount(2, 2, 0)
    canaries.look(108.0, Arrived(FLOW, 1, 0, 107.5))
    assert canaries.ledger.totals.duplicates == 1


def test_canaries_of_a_name_that_another_replica_got_are_unknown() -> None:
    canaries = Canaries()
    canaries.look(101.0, InstanceNamed(FLOW, "replica-0"), *sent(1, 100.5), alive(101.0))
    canaries.look(165.0, *sent(2, 164.0), alive(165.0))
    assert canaries.count(AVAILABILITY) == SliCount(0, 1, 0)
    canaries.look(166.0, InstanceNamed(FLOW, "replica-0"), alive(166.0))
    assert canaries.ledger.pending == 2
    canaries.look(167.0, InstanceNamed(FLOW, "replica-1"), alive(167.0))
    assert canaries.count(COMPLETENESS) == SliCount(0, 0, 1)
    # Positions beyond them prove nothing: their copies are not read any more.
    canaries.log.live(10, 10)
    canaries.log.committed = 9
    canaries.look(240.0, alive(240.0, 10))
    canaries.look(245.0, alive(245.0, 10))
    assert canaries.ledger.totals.lost == 0
    assert canaries.count(COMPLETENESS) == SliCount(0, 0, 2)
    assert canaries.count(AVAILABILITY) == SliCount(0, 1, 1)
