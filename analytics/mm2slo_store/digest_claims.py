"""Claims of Slack digests: each is posted once per period and channel, across processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    PrimaryKeyConstraint,
    String,
    Table,
    delete,
    insert,
    select,
    update,
)

from mm2slo_core.user_errors import UserError
from mm2slo_store.open_store import OpenStore
from mm2slo_store.schema import metadata

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

digests = Table(
    "digests",
    metadata,
    Column("period", String, nullable=False),
    Column("channel", String, nullable=False),
    Column("claimed_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    Column("ts", String),
    PrimaryKeyConstraint("period", "channel", name="pk_digests"),
)


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
            if _find(connection, period, channel) is not None:
                return False
            connection.execute(insert(digests), new)
            return True

    def mark_digest_posted(self, period: str, channel: str, ts: str | None) -> None:
        """Record that it was posted, with the message's *ts* if Slack returned one.

        Raises UserError if it is not claimed.
        """
        with self._writing() as connection:
            done = connection.execute(
                update(digests).where(_on(period, channel)).values(sent_at=self._clock(), ts=ts)
            )
        if done.rowcount != 1:
            raise UserError(
                f"the store {self.redacted} has no claim of the digest of {period} for {channel}: "
                "claim it before posting it"
            )

    def release_digest(self, period: str, channel: str) -> bool:
        """Withdraw a claim; False if the digest was posted or is not claimed."""
        unsent = _on(period, channel) & digests.c.sent_at.is_(None)
        with self._writing() as connection:
            return connection.execute(delete(digests).where(unsent)).rowcount == 1

    def digest_claim(self, period: str, channel: str) -> DigestClaim | None:
        """The claim; None: not claimed."""
        with self._reading() as connection:
            return _find(connection, period, channel)


def _find(connection: Connection, period: str, channel: str) -> DigestClaim | None:
    row = connection.execute(select(*digests.c).where(_on(period, channel))).one_or_none()
    return None if row is None else DigestClaim._make(row)


def _on(period: str, channel: str) -> ColumnElement[bool]:
    return (digests.c.period == period) & (digests.c.channel == channel)
