"""Events of the canary process in, settled fates out."""

from __future__ import annotations

import pytest
from observing import Scene

from mm2slo_core.canary_rules import CanaryRules
from mm2slo_core.selection import TopicPair, TopicRole
from mm2slo_core.sli import Sli, SliCount, SliKey
from mm2slo_exporter.canary.events import (
    Arrived,
    Event,
    Produced,
    ProduceFailed,
    ReadThrough,
    Resent,
    Restored,
    Scheduled,
    Trouble,
    Working,
)
from mm2slo_exporter.state.canaries import CanaryTracker

FLOW = "us->eu"
PAIR = TopicPair("mm2slo.canary", "us.mm2slo.canary", TopicRole.CANARY)
AVAILABILITY, COMPLETENESS = SliKey(Sli.AVAILABILITY), SliKey(Sli.COMPLETENESS)


class Canaries:
    """A tracker whose process has restored nothing at 100 s."""

    def __init__(self, *, confirm_losses: bool = False, restored: bool = True) -> None:
        self.scene = Scene()
        self.log = self.scene.add(PAIR.source, role=TopicRole.CANARY)
        rules = CanaryRules(own_topic=True, confirm_losses=confirm_losses)
        self.tracker = CanaryTracker(rules, started_at=99.0)
        self.ledger = self.tracker.ledger
        if restored:
            self.look(100.0, Restored(FLOW, 100.0))

    def look(self, at: float, *events: Event) -> None:
        self.tracker.observe(self.scene.look(at, *events), PAIR)

    def count(self, key: SliKey) -> SliCount:
        return self.ledger.counters[key]


def sent(sequence: int, at: float) -> tuple[Event, Event]:
    return (
        Scheduled(FLOW, sequence, 0, at),
        Produced(FLOW, sequence, 0, sequence, at + 0.01),
    )


def alive(at: float, offset: int = 0) -> Event:
    return ReadThrough(FLOW, 0, offset, at)


def test_an_arrival_in_time_is_good_at_once() -> None:
    canaries = Canaries()
    canaries.look(105.0, *sent(1, 101.0), Arrived(FLOW, 1, 0, 101.5))
    assert canaries.count(AVAILABILITY) == SliCount(1, 1, 0)
    assert canaries.count(COMPLETENESS) == SliCount(1, 1, 0)
    assert canaries.ledger.last_arrival_at == 101.5
    assert canaries.tracker.latencies.read().total_seconds == 0.5


def test_a_reader_that_is_refused_knows_nothing_of_what_falls_due() -> None:
    canaries = Canaries()
    refused = Trouble(FLOW, "eu", "canary_receive", "authorization", "no", 102.0)
    canaries.look(102.0, *sent(1, 101.0), refused)
    assert canaries.ledger.silence(140.0) is None
    canaries.look(162.0)
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)
    assert canaries.count(COMPLETENESS) == SliCount()
    # Let in again, it finds the record: complete, and still not known to be late.
    working = Working(FLOW, "eu", "canary_receive", 170.0)
    canaries.look(170.0, Arrived(FLOW, 1, 0, 170.0), working, *sent(2, 169.0))
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)
    assert canaries.count(COMPLETENESS) == SliCount(1, 1, 0)
    assert canaries.ledger.silence(175.0) == pytest.approx(5.0)
    canaries.look(230.0, alive(230.0))
    assert canaries.count(AVAILABILITY).unknown == 2


def test_a_deadline_settles_only_when_the_target_was_read_up_to_it() -> None:
    canaries = Canaries()
    canaries.look(102.0, *sent(1, 101.0), alive(101.9))
    canaries.look(170.0)  # nothing was read since: the arrival may be on its way to us
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 0)
    canaries.look(171.0, Arrived(FLOW, 1, 0, 110.0), alive(170.9))
    assert canaries.count(AVAILABILITY) == SliCount(1, 1, 0)
    canaries.look(172.0, *sent(2, 171.0))
    canaries.look(240.0, Working(FLOW, "eu", "canary_receive", 231.5))
    assert canaries.count(AVAILABILITY) == SliCount(1, 2, 0)


def test_a_failed_produce_is_unknown_at_its_deadline() -> None:
    canaries = Canaries()
    canaries.look(102.0, Scheduled(FLOW, 1, 0, 101.0), ProduceFailed(FLOW, 1, "timeout", 102.0))
    canaries.look(170.0, alive(170.0))
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)
    assert canaries.count(COMPLETENESS) == SliCount(0, 0, 1)


def test_a_loss_needs_a_proven_position_and_a_target_read_beyond_it() -> None:
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


def test_a_sync_proves_a_position_as_a_commit_does_and_interpolation_does_not() -> None:
    canaries = Canaries()
    canaries.log.live(9, 9)  # the sync of record 0: all beyond it is interpolated
    canaries.look(102.0, *sent(1, 101.0))
    for at in (165.0, 170.0, 175.0):
        canaries.look(at, alive(at, 9))
    assert canaries.ledger.totals.lost == 0
    assert canaries.log.sync is not None
    canaries.log.sync = canaries.log.sync._replace(upstream=1)
    for at in (180.0, 185.0):
        canaries.look(at, alive(at, 9))
    assert canaries.ledger.totals.lost == 1


def test_what_retention_took_first_is_expired_and_no_loss() -> None:
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


def test_on_a_compacted_carrier_a_loss_is_looked_up_first() -> None:
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
def test_a_cluster_that_is_away_excuses_what_fell_due_meanwhile(side: str) -> None:
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


def resent(sequence: int, at: float, newest_arrived: int | None, floor: int | None = 1) -> Event:
    return Resent(FLOW, sequence, 0, sequence, at, floor, newest_arrived)


def test_a_restart_goes_on_with_what_was_in_flight() -> None:
    canaries = Canaries(restored=False)
    canaries.look(
        200.0,
        # 1 and 2 had arrived when 4 was sent; 3 came while nobody looked, 4 is on its way.
        *(resent(sequence, 190.0 + sequence, newest_arrived=2) for sequence in (1, 2, 3, 4)),
        *(Arrived(FLOW, sequence, 0, 200.0) for sequence in (1, 2, 3)),
    )
    assert canaries.ledger.totals.received == 0
    canaries.look(201.0, Restored(FLOW, 200.5))
    assert canaries.ledger.totals.received == 1
    assert canaries.ledger.totals.duplicates == 0
    assert canaries.count(AVAILABILITY) == SliCount(1, 1, 0)
    assert canaries.ledger.pending == 1
    canaries.look(203.0, Arrived(FLOW, 4, 0, 202.0))
    assert canaries.count(AVAILABILITY) == SliCount(2, 2, 0)
    assert canaries.ledger.newest_arrived == 4


def test_before_a_restart_is_done_evidence_counts_nothing_as_lost() -> None:
    canaries = Canaries()
    canaries.log.end, canaries.log.committed, canaries.log.target_end = 5, 4, 5
    canaries.look(102.0, *sent(1, 101.0))
    canaries.look(165.0, alive(165.0, 0))
    canaries.look(170.0, alive(170.0, 0))
    canaries.tracker.process_started(171.0)
    # The new process finds the arrival and reads to the end, but has not told all yet.
    canaries.look(175.0, resent(1, 101.0, None), Arrived(FLOW, 1, 0, 174.0), alive(174.0, 5))
    canaries.look(180.0, alive(179.0, 5))
    assert canaries.ledger.totals.lost == 0
    canaries.look(185.0, Restored(FLOW, 184.0))
    canaries.look(190.0, alive(190.0, 5))
    assert canaries.ledger.totals.lost == 0


def test_a_new_process_tells_old_canaries_again_and_none_counts_twice() -> None:
    canaries = Canaries()
    canaries.look(105.0, *sent(1, 101.0), Arrived(FLOW, 1, 0, 101.5), *sent(2, 102.0))
    canaries.tracker.process_started(106.0)
    again = (resent(1, 101.0, None), resent(2, 102.0, 1), Arrived(FLOW, 1, 0, 108.0))
    canaries.look(109.0, *again, Restored(FLOW, 108.5))
    totals = canaries.ledger.totals
    assert (totals.received, totals.duplicates, totals.sent) == (1, 0, 2)
    canaries.look(111.0, Arrived(FLOW, 2, 0, 110.0), alive(110.0))
    assert canaries.count(AVAILABILITY) == SliCount(2, 2, 0)


def test_a_process_that_is_away_at_the_deadline_leaves_it_unknown() -> None:
    canaries = Canaries()
    canaries.look(105.0, *sent(1, 101.0))
    canaries.tracker.process_started(106.0)
    canaries.look(200.0)
    assert canaries.count(AVAILABILITY) == SliCount(0, 0, 1)
