"""What is counted of an outage if the exporter is killed again and again, as Prometheus sees it."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from flow_observations import Scene

from mm2slo_core.indicators.canary_rules import CanaryRules
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    EarlierCanary,
    LedgerState,
    Produced,
    ReadUpTo,
    RestoreFinished,
    Scheduled,
)
from mm2slo_exporter.state.canary_tracker import CanaryTracker

FLOW = "us->eu"
PAIR = TopicPair("mm2slo.canary", "us.mm2slo.canary", TopicRole.CANARY)
POLL, SCRAPE = 5, 15


@dataclass
class Canaries:
    """The canaries on both clusters, and the sum of what was scraped, each second a step."""

    outage: range
    sent: list[EarlierCanary] = field(default_factory=list)
    copied: dict[int, int] = field(default_factory=dict)
    scraped: Counter[str] = field(default_factory=Counter)

    def live(self, start: int, end: int, restore: int) -> None:
        """A process from *start* to *end*, which sends canaries from *restore* seconds on."""
        scene, events = Scene(), list[object]()
        scene.add(PAIR.source, role=TopicRole.CANARY)
        tracker = CanaryTracker(CanaryRules(own_topic=True), started_at=start)
        published, carried, seen = (Counter[str](), LedgerState()), LedgerState(), Counter[str]()
        for now in range(start, end):
            if now % SCRAPE == 0:
                seen, carried = published
            if now == start + restore:
                copies = [Arrived(FLOW, each, 0, now, reread=True) for each in self.copied]
                events += [*self.sent, *copies, RestoreFinished(FLOW, now)]
            if now >= start + restore:
                sequence = start * 1000 + now - start
                self.sent.append(EarlierCanary(FLOW, sequence, 0, sequence, now, *carried))
                events.append(Scheduled(FLOW, sequence, 0, now))
                events.append(Produced(FLOW, sequence, 0, sequence, now))
                if now not in self.outage:
                    self.copied[sequence] = now
                    events.append(Arrived(FLOW, sequence, 0, now + 0.1))
                events.append(ReadUpTo(FLOW, 0, 0, now + 0.2))
            if (now - start) % POLL == 2:
                tracker.observe(scene.look(now + 0.5, *events), PAIR)  # type: ignore[arg-type]
                events = []
                found = tracker.ledger.counters[SliKey(Sli.AVAILABILITY)]
                counts = {
                    "good": found.good,
                    "bad": found.total - found.good,
                    "unknown": found.unknown,
                }
                published = Counter(counts), tracker.ledger_state
        self.scraped += seen


def killed(lives: list[int], outage: range, restore: int) -> Counter[str]:
    """Processes that start 3 s after the end of the preceding one."""
    canaries = Canaries(outage)
    for start, end in pairwise(lives):
        canaries.live(start, end - 3, restore)
    return canaries.scraped


@pytest.mark.parametrize("restore", [6, 18], ids=["quick start", "slow start"])
def test_outage_of_ten_short_lives_is_counted(restore: int) -> None:
    """278 s of outage were 33 bad and 15 unknown canaries, and the rest none at all."""
    lives = [100, 300, *range(328, 580, 28), 900]
    found = killed(lives, range(300, 578), restore)
    sent_in_outage = sum(max(0, 25 - restore) for _ in range(9)) + 578 - 552 - restore
    # A restart leaves the few that arrived since the last scrape without a time.
    assert found["bad"] >= 0.9 * sent_in_outage
    assert found["bad"] <= sent_in_outage
    # All that were due but for the first start and the last scrape.
    due = 897 - 100 - restore
    assert due - SCRAPE - POLL <= sum(found.values()) <= due


def test_short_lives_without_an_outage_count_nothing_bad() -> None:
    found = killed([100, 300, *range(328, 580, 28), 900], range(0), 6)
    assert found["bad"] == 0
    assert found["unknown"] <= 11 * 12


def test_lives_that_are_never_scraped_lose_nothing() -> None:
    """Nine lives of 12 s, of which most are killed before a scrape."""
    found = killed([100, 300, *range(315, 435, 15), 800], range(300, 430), 6)
    assert found["bad"] + found["unknown"] >= 130
