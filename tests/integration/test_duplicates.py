"""Canaries count exactly what a killed MirrorMaker 2 replicates again."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from exporter_watch import Scrape, Watch, counters_never_decreased, watch
from topic_reader import read_topic

from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

_PER_SECOND = 5
_BLOCK = 15  # uncommitted canaries at the kill; fewer if a stall lets another flush come first
_MAX_IN_FLIGHT = 3
_TARGETS = {"heartbeats": "us.heartbeats", "topic": "us.mm2slo.canary"}


@dataclass(frozen=True)
class Outcome:
    """Scrapes of one carrier, and the canaries that a reader of its topic found."""

    before: Scrape
    after: Scrape
    settled: Scrape
    copies: Counter[int]
    decreased: list[str]

    @property
    def duplicates(self) -> int:
        """Records beyond the first of each sequence number."""
        return sum(self.copies.values()) - len(self.copies)


def instance(carrier: str) -> str:
    return f"duplicates-{carrier}"


def copies(lab: Lab, carrier: str) -> Counter[int]:
    """Number of copies on the target by sequence number."""
    found: Counter[int] = Counter()
    for message in read_topic(lab.cluster("eu").librdkafka(), _TARGETS[carrier]):
        headers = dict(message.headers() or [])
        sequence = headers.get("mm2slo-sequence")
        if headers.get("mm2slo-instance") == instance(carrier).encode() and sequence is not None:
            found[int(sequence)] += 1
    return found


def commits(lab: Lab) -> dict[str, int]:
    """MM2's newest committed offset of each partition, by its key."""
    records = read_topic(lab.cluster("eu").librdkafka(), "mm2-offsets.us.internal")
    return {
        (m.key() or b"").decode(): json.loads(m.value() or b"{}").get("offset") for m in records
    }


def carrier_commits(lab: Lab) -> dict[str, int]:
    return {k: v for k, v in commits(lab).items() if '"heartbeats"' in k or "mm2slo.canary" in k}


def received(scrape: Scrape, carrier: str) -> float:
    return scrape.value("mm2_canary_received_total", carrier=carrier) or 0


@pytest.fixture(scope="module")
def slow_flush(lab: Lab) -> Iterator[Lab]:
    """MM2 commits its source offsets every ten seconds."""
    lab.mm2.configure({"eu.offset.flush.interval.ms": "10000"})
    lab.mm2.restart()
    yield lab
    lab.mm2.configure({})
    lab.mm2.restart()


@pytest.fixture(scope="module")
def outcomes(slow_flush: Lab) -> dict[str, Outcome]:
    """Kill MirrorMaker 2 once, with both carriers."""
    lab = slow_flush
    with ExitStack() as watches:
        watching = {
            carrier: watches.enter_context(
                watch(
                    lab,
                    ["us->eu"],
                    flow={
                        "canary": {"carrier": carrier, "interval": f"{1000 // _PER_SECOND}ms"},
                        "offset_flush_interval": "10s",
                    },
                    exporter={"instance": instance(carrier)},
                )
            )
            for carrier in _TARGETS
        }
        for carrier, seen in watching.items():
            wait_received(seen, carrier, 1)
        flushed = carrier_commits(lab)
        wait_for(
            lambda: all(carrier_commits(lab).get(key) != at for key, at in flushed.items()),
            "a flush",
        )
        starts = {carrier: received(seen.scrape(), carrier) for carrier, seen in watching.items()}
        before = {
            carrier: wait_received(seen, carrier, starts[carrier] + _BLOCK)
            for carrier, seen in watching.items()
        }
        lab.mm2.kill()
        lab.mm2.start()
        found = {}
        after, settled = {}, {}
        for carrier, seen in watching.items():
            after[carrier] = wait_caught_up(seen, carrier)
            found[carrier] = copies(lab, carrier)
            settled[carrier] = wait_settled(seen, carrier, received(after[carrier], carrier) + 20)
        return {
            carrier: Outcome(
                before[carrier],
                after[carrier],
                settled[carrier],
                found[carrier],
                counters_never_decreased(seen.scrapes),
            )
            for carrier, seen in watching.items()
        }


def wait_caught_up(seen: Watch, carrier: str) -> Scrape:
    """Wait until other canaries arrived and only the newest are in flight.

    A partition gets replayed records before new ones, so no more duplicates can follow.
    """
    start = received(seen.scrapes[-1], carrier)
    return seen.until(
        lambda s: (
            received(s, carrier) > start
            and (s.value("mm2_canary_pending", carrier=carrier) or 0) <= _MAX_IN_FLIGHT
        ),
        f"the canaries by {carrier} to catch up",
    )


def wait_settled(seen: Watch, carrier: str, count: float) -> Scrape:
    """Wait until *count* canaries have arrived and nearly all that are due were sent."""
    return seen.until(
        lambda s: received(s, carrier) >= count and 0 <= unsent(s, carrier) <= 2,
        f"{count} settled canaries by {carrier}",
    )


def unsent(scrape: Scrape, carrier: str) -> float:
    """Canaries that are pending, but not acknowledged by the source."""
    sent = scrape.value("mm2_canary_sent_total", carrier=carrier)
    pending = scrape.value("mm2_canary_pending", carrier=carrier)
    assert sent is not None
    assert pending is not None
    return received(scrape, carrier) + pending - sent


def wait_received(seen: Watch, carrier: str, count: float, timeout: float = 180.0) -> Scrape:
    return seen.until(
        lambda s: received(s, carrier) >= count, f"{count} canaries by {carrier}", timeout
    )


@pytest.mark.parametrize("carrier", _TARGETS)
def test_duplicates_equal_count_of_independent_reader(
    outcomes: dict[str, Outcome], carrier: str
) -> None:
    outcome = outcomes[carrier]
    assert outcome.before.value("mm2_canary_duplicates_total", carrier=carrier) == 0
    assert outcome.duplicates > 0
    counted = outcome.settled.value("mm2_canary_duplicates_total", carrier=carrier)
    assert counted == outcome.duplicates


@pytest.mark.parametrize("carrier", _TARGETS)
def test_replayed_canaries_are_not_lost_late_or_received_twice(
    outcomes: dict[str, Outcome], carrier: str
) -> None:
    outcome = outcomes[carrier]
    for outcome_name in ("lost", "late", "expired", "reordered", "moved", "unknown"):
        assert outcome.settled.value(f"mm2_canary_{outcome_name}_total", carrier=carrier) == 0, (
            outcome_name
        )
    # A canary is pending from its due time, shortly before it counts as sent.
    assert 0 <= unsent(outcome.settled, carrier) <= 2
    assert outcome.decreased == []


def test_uniqueness_of_own_topic_counts_each_arrival(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["topic"]
    good, total, unknown = outcome.settled.sli("us->eu", "uniqueness")
    assert (good, total, unknown) == (
        received(outcome.settled, "topic"),
        received(outcome.settled, "topic") + outcome.duplicates,
        0,
    )


@pytest.mark.parametrize("sli", ["order", "affinity"])
def test_replayed_block_breaks_neither_order_nor_affinity(
    outcomes: dict[str, Outcome], sli: str
) -> None:
    outcome = outcomes["topic"]
    arrived = received(outcome.settled, "topic")
    assert outcome.settled.sli("us->eu", sli) == (arrived, arrived, 0)


@pytest.mark.parametrize("sli", ["uniqueness", "order", "affinity"])
def test_heartbeats_carrier_publishes_no_order_or_affinity(
    outcomes: dict[str, Outcome], sli: str
) -> None:
    published = outcomes["heartbeats"].settled.values("mm2_sli_events_total", sli=sli)
    assert published == {}
