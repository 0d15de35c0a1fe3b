"""Leases of target topics: one holder at a time, across processes, until it expires."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, select, update

from mm2slo_core.user_errors import UserError
from mm2slo_store.open_store import OpenStore
from mm2slo_store.schema import leases
from mm2slo_store.upsert import insert_into

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sqlalchemy import ColumnElement, Connection

LEASE_MS: Final = 60_000
_RENEWALS: Final = 3
"""Renewals per TTL of a lease, of which some may fail."""


class LeaseHeldError(UserError):
    """Another run holds the lease."""

    def __init__(self, target_topic: str, holder: str, expires_in_ms: int) -> None:
        super().__init__(
            f"{target_topic} is being audited by run {holder}: wait for it; if it was killed, its "
            f"lease expires in {max(0, expires_in_ms) / 1000:.0f} s"
        )
        self.holder = holder
        self.expires_in_ms = max(0, expires_in_ms)


class LeaseLostError(UserError):
    """The lease expired and another run took it over; this run's results are not stored."""

    def __init__(self, target_topic: str, holder: str) -> None:
        super().__init__(
            f"nothing was stored: the lease on {target_topic} expired and run {holder} took it "
            "over; run the audit again when that run has finished"
        )
        self.holder = holder


class Lease:
    """A lease that a thread renews until `end`.

    Renewals may fail while the store is down: the lease is held until another holder takes it.
    """

    def __init__(self, renew: Callable[[], bool], every_s: float) -> None:
        self._renew = renew
        self._every_s = every_s
        self._lost = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="mm2slo-lease", daemon=True)
        self._thread.start()

    @property
    def is_held(self) -> bool:
        """False once another holder is known to have taken it."""
        return not self._lost.is_set()

    def end(self) -> None:
        """Stop renewing."""
        self._ended.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                kept = self._renew()
            except UserError:  # the store is down; it may recover before the lease expires
                continue
            if not kept:
                self._lost.set()
                return


class Leases(OpenStore):
    """Acquire, renew and release the lease of a target topic."""

    @contextmanager
    def lease(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> Iterator[Lease]:
        """Hold a target topic for the run *holder*; a thread renews the lease.

        Raises LeaseHeldError at once if another run has an unexpired lease.
        """
        self.acquire(target_cluster, target_topic, holder=holder, ttl_ms=ttl_ms)
        held = Lease(
            lambda: self.renew(target_cluster, target_topic, holder=holder, ttl_ms=ttl_ms),
            ttl_ms / 1000 / _RENEWALS,
        )
        try:
            yield held
        finally:
            held.end()
            self.release(target_cluster, target_topic, holder=holder)

    def acquire(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> None:
        """Acquire a lease that is free, expired or *holder*'s. Raises LeaseHeldError otherwise."""
        now = self._clock()
        values = {"holder": holder, "acquired_at": now, "expires_at": now + ttl_ms}
        key = {"target_cluster": target_cluster, "target_topic": target_topic}
        current = select(leases.c.holder, leases.c.expires_at).where(
            _on(target_cluster, target_topic)
        )
        with self._writing() as connection:
            connection.execute(
                insert_into(connection, leases)
                .values(**key, **values)
                .on_conflict_do_update(
                    index_elements=list(key),
                    set_=values,
                    where=(leases.c.expires_at <= now) | (leases.c.holder == holder),
                )
            )
            owner, until = connection.execute(current).one()
        if owner != holder:
            raise LeaseHeldError(target_topic, owner, until - now)

    def renew(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> bool:
        """Renew a lease; False if another has taken it over."""
        mine = _on(target_cluster, target_topic) & (leases.c.holder == holder)
        with self._writing() as connection:
            renewed = update(leases).where(mine).values(expires_at=self._clock() + ttl_ms)
            return connection.execute(renewed).rowcount == 1

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Release a lease; False, without effect, if another has taken it over."""
        mine = _on(target_cluster, target_topic) & (leases.c.holder == holder)
        with self._writing() as connection:
            return connection.execute(delete(leases).where(mine)).rowcount == 1


def refuse_if_taken(
    connection: Connection, topics: Iterable[tuple[str, str]], *, holder: str, now: int
) -> None:
    """Raise LeaseLostError if another holder has an unexpired lease on one of *topics*."""
    for cluster, topic in topics:
        live = (leases.c.expires_at > now) & (leases.c.holder != holder)
        other = connection.execute(
            select(leases.c.holder).where(_on(cluster, topic), live)
        ).scalar()
        if other is not None:
            raise LeaseLostError(topic, other)


def _on(target_cluster: str, target_topic: str) -> ColumnElement[bool]:
    return (leases.c.target_cluster == target_cluster) & (leases.c.target_topic == target_topic)
