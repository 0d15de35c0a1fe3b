"""Leases of target topics and claims of Slack digests: one holder each, across processes.

A lease lasts until it expires; a digest is claimed once per period and channel.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    delete,
    insert,
    select,
    update,
)

from mm2slo_core.user_errors import UserError
from mm2slo_store.open_store import OpenStore, insert_into
from mm2slo_store.store_schema import digests, leases

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
            _lease_on(target_cluster, target_topic)
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
        mine = _lease_on(target_cluster, target_topic) & (leases.c.holder == holder)
        with self._writing() as connection:
            renewed = update(leases).where(mine).values(expires_at=self._clock() + ttl_ms)
            return connection.execute(renewed).rowcount == 1

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Release a lease; False, without effect, if another has taken it over."""
        mine = _lease_on(target_cluster, target_topic) & (leases.c.holder == holder)
        with self._writing() as connection:
            return connection.execute(delete(leases).where(mine)).rowcount == 1


def refuse_if_taken(
    connection: Connection, topics: Iterable[tuple[str, str]], *, holder: str, now: int
) -> None:
    """Raise LeaseLostError if another holder has an unexpired lease on one of *topics*."""
    for cluster, topic in topics:
        live = (leases.c.expires_at > now) & (leases.c.holder != holder)
        other = connection.execute(
            select(leases.c.holder).where(_lease_on(cluster, topic), live)
        ).scalar()
        if other is not None:
            raise LeaseLostError(topic, other)


def _lease_on(target_cluster: str, target_topic: str) -> ColumnElement[bool]:
    return (leases.c.target_cluster == target_cluster) & (leases.c.target_topic == target_topic)


class DigestClaim(NamedTuple):
    """A digest that is being posted or was. Times are epoch ms; `ts` is Slack's message id."""

    period: str
    channel: str
    claimed_at: int
    sent_at: int | None
    ts: str | None


class DigestClaims(OpenStore):
    """Claim a digest before posting it; then mark it as posted, or release it if posting failed."""

    def claim_digest(self, period: str, channel: str) -> bool:
        """Claim a digest; of concurrent callers, one gets True.

        A claim that is neither marked as posted nor released remains, so that a digest with an
        unknown result is not posted twice.
        """
        new = {"period": period, "channel": channel, "claimed_at": self._clock()}
        with self._writing() as connection:
            # Nothing can be claimed between the two statements: writers exclude each other.
            if _find_digest_claim(connection, period, channel) is not None:
                return False
            connection.execute(insert(digests), new)
            return True

    def mark_digest_posted(self, period: str, channel: str, ts: str | None) -> None:
        """Record that it was posted, with the message's *ts* if Slack returned one.

        Raises UserError if it is not claimed.
        """
        with self._writing() as connection:
            done = connection.execute(
                update(digests)
                .where(_digest_on(period, channel))
                .values(sent_at=self._clock(), ts=ts)
            )
        if done.rowcount != 1:
            raise UserError(
                f"the store {self.redacted} has no claim of the digest of {period} for {channel}: "
                "claim it before posting it"
            )

    def release_digest(self, period: str, channel: str) -> bool:
        """Withdraw a claim; False if the digest was posted or is not claimed."""
        unsent = _digest_on(period, channel) & digests.c.sent_at.is_(None)
        with self._writing() as connection:
            return connection.execute(delete(digests).where(unsent)).rowcount == 1

    def digest_claim(self, period: str, channel: str) -> DigestClaim | None:
        """The claim; None: not claimed."""
        with self._reading() as connection:
            return _find_digest_claim(connection, period, channel)


def _find_digest_claim(connection: Connection, period: str, channel: str) -> DigestClaim | None:
    row = connection.execute(select(*digests.c).where(_digest_on(period, channel))).one_or_none()
    return None if row is None else DigestClaim._make(row)


def _digest_on(period: str, channel: str) -> ColumnElement[bool]:
    return (digests.c.period == period) & (digests.c.channel == channel)
