"""What leases must do, on every back-end: a class of tests over the fixture `back_end`."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mm2slo_core.audit.scope import Window
from mm2slo_store import LeaseHeldError, LeaseLostError
from store_specs.results import ORDERS, judged, orders_outcome, run_of, unjudged

if TYPE_CHECKING:
    from store_specs.back_end import BackEnd

FIRST = Window(0, 100)


class LeasingContract:
    """One holder at a time."""

    def test_a_held_topic_is_refused_until_it_is_given_back(self, back_end: BackEnd) -> None:
        with back_end.open() as ours, back_end.open() as theirs:
            with ours.lease("eu", ORDERS, holder="r1", ttl_ms=60_000) as lease:
                with pytest.raises(LeaseHeldError, match=r"by the run r1: .* ends in 60 s") as held:
                    theirs.acquire("eu", ORDERS, holder="r2")
                assert held.value.holder == "r1"
                theirs.acquire("eu", "other", holder="r2")
                theirs.acquire("us", ORDERS, holder="r2")
                assert lease.held
            theirs.acquire("eu", ORDERS, holder="r2")

    def test_an_expired_lease_is_taken_over(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.acquire("eu", ORDERS, holder="r1", ttl_ms=1_000)
            back_end.clock.now += 999
            with pytest.raises(LeaseHeldError):
                store.acquire("eu", ORDERS, holder="r2", ttl_ms=1_000)
            back_end.clock.now += 1
            store.acquire("eu", ORDERS, holder="r2", ttl_ms=1_000)
            assert not store.renew("eu", ORDERS, holder="r1")
            assert not store.release("eu", ORDERS, holder="r1")
            assert store.renew("eu", ORDERS, holder="r2", ttl_ms=5_000)
            back_end.clock.now += 4_999
            with pytest.raises(LeaseHeldError, match="by the run r2"):
                store.acquire("eu", ORDERS, holder="r3")
            assert store.release("eu", ORDERS, holder="r2")

    def test_a_lease_is_renewed_while_it_is_held(self, back_end: BackEnd) -> None:
        """The clock jumps beyond the lease's end; the thread's renewal is what keeps it."""
        with back_end.open() as store, store.lease("eu", ORDERS, holder="r1", ttl_ms=300) as lease:
            back_end.clock.now += 250
            renewed = back_end.clock.now + 300
            for _ in range(200):
                if f"'expires_at': {renewed}" in repr(back_end.content()["audit_leases"]):
                    break
                threading.Event().wait(0.05)
            back_end.clock.now += 299
            with pytest.raises(LeaseHeldError):
                store.acquire("eu", ORDERS, holder="r2")
            assert lease.held

    def test_a_lease_that_was_taken_over_is_known_to_be_lost(self, back_end: BackEnd) -> None:
        with back_end.open() as store, store.lease("eu", ORDERS, holder="r1", ttl_ms=300) as lease:
            # A pause of the whole process, as by a suspended machine, is what lets one expire.
            back_end.clock.now += 10_000
            try:
                store.acquire("eu", ORDERS, holder="r2", ttl_ms=60_000)
            except LeaseHeldError:  # the thread was faster: it renewed first
                back_end.clock.now += 10_000
                store.acquire("eu", ORDERS, holder="r2", ttl_ms=60_000)
            for _ in range(200):
                if not lease.held:
                    break
                threading.Event().wait(0.05)
            assert not lease.held

    def test_who_lost_the_lease_stores_nothing(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.acquire("eu", ORDERS, holder="r1", ttl_ms=100)
            back_end.clock.now += 100
            store.acquire("eu", ORDERS, holder="r2", ttl_ms=100)
            with pytest.raises(
                LeaseLostError, match=r"nothing was stored: .* the run r2 took it over"
            ):
                store.publish(run_of("r1", judged(orders_outcome(FIRST))))
            assert store.runs() == ()
            # A topic that is not audited for that reason may well be told of.
            store.publish(run_of("r1", unjudged(FIRST)))
            assert [run.header.id for run in store.runs()] == ["r1"]
            store.publish(run_of("r2", judged(orders_outcome(FIRST))))
            assert [run.header.id for run in store.runs()] == ["r2"]

    def test_of_many_that_ask_at_once_one_gets_it(self, back_end: BackEnd) -> None:
        with back_end.open() as store:

            def asks(number: int) -> bool:
                try:
                    store.acquire("eu", ORDERS, holder=f"r{number}")
                except LeaseHeldError:
                    return False
                return True

            with ThreadPoolExecutor(8) as pool:
                assert sum(pool.map(asks, range(16))) == 1
