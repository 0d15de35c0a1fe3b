"""Leases on every back-end: tests over the fixture `back_end`."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mm2slo_core.audit.audit_scope import Window
from mm2slo_store.store_leases import LeaseHeldError, LeaseLostError
from store_specs.back_end import BackEnd
from store_specs.sample_results import ORDERS, judged, orders_outcome, run_of, unjudged

FIRST = Window(0, 100)


class LeaseContract:
    """A lease has one holder at a time."""

    def test_acquire_held_lease_is_refused_until_released(self, back_end: BackEnd) -> None:
        with back_end.open() as ours, back_end.open() as theirs:
            with ours.lease("eu", ORDERS, holder="r1", ttl_ms=60_000) as lease:
                with pytest.raises(LeaseHeldError, match=r"by run r1: .* expires in 60 s") as held:
                    theirs.acquire("eu", ORDERS, holder="r2")
                assert held.value.holder == "r1"
                theirs.acquire("eu", "other", holder="r2")
                theirs.acquire("us", ORDERS, holder="r2")
                assert lease.is_held
            theirs.acquire("eu", ORDERS, holder="r2")

    def test_acquire_expired_lease_takes_it_over(self, back_end: BackEnd) -> None:
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
            with pytest.raises(LeaseHeldError, match="by run r2"):
                store.acquire("eu", ORDERS, holder="r3")
            assert store.release("eu", ORDERS, holder="r2")

    def test_lease_is_renewed_by_its_thread(self, back_end: BackEnd) -> None:
        """The clock jumps beyond the lease's expiry; only a renewal keeps it."""
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
            assert lease.is_held

    def test_lease_taken_over_is_not_held(self, back_end: BackEnd) -> None:
        with back_end.open() as store, store.lease("eu", ORDERS, holder="r1", ttl_ms=300) as lease:
            # Leases expire when the process is paused, such as on a suspended machine.
            back_end.clock.now += 10_000
            try:
                store.acquire("eu", ORDERS, holder="r2", ttl_ms=60_000)
            except LeaseHeldError:  # the thread was faster: it renewed first
                back_end.clock.now += 10_000
                store.acquire("eu", ORDERS, holder="r2", ttl_ms=60_000)
            for _ in range(200):
                if not lease.is_held:
                    break
                threading.Event().wait(0.05)
            assert not lease.is_held

    def test_publish_after_losing_the_lease_stores_nothing(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.acquire("eu", ORDERS, holder="r1", ttl_ms=100)
            back_end.clock.now += 100
            store.acquire("eu", ORDERS, holder="r2", ttl_ms=100)
            with pytest.raises(LeaseLostError, match=r"nothing was stored: .* run r2 took it over"):
                store.publish(run_of("r1", judged(orders_outcome(FIRST))))
            assert store.runs() == ()
            # A topic that was not audited can be published without a lease.
            store.publish(run_of("r1", unjudged(FIRST)))
            assert [run.header.id for run in store.runs()] == ["r1"]
            store.publish(run_of("r2", judged(orders_outcome(FIRST))))
            assert [run.header.id for run in store.runs()] == ["r2"]

    def test_acquire_concurrently_succeeds_once(self, back_end: BackEnd) -> None:
        with back_end.open() as store:

            def acquires(number: int) -> bool:
                try:
                    store.acquire("eu", ORDERS, holder=f"r{number}")
                except LeaseHeldError:
                    return False
                return True

            with ThreadPoolExecutor(8) as pool:
                assert sum(pool.map(acquires, range(16))) == 1
