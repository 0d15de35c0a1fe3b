"""Which digests were posted, once per period and channel, over processes and restarts."""

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

from mm2slo_core.errors import UserError
from mm2slo_store.opened import OpenStore
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


class Digest(NamedTuple):
    """A digest that is being posted, or was. Times are epoch ms; `ts` is Slack's id of it."""

    period: str
    channel: str
    claimed_at: int
    sent_at: int | None
    ts: str | None


class Digests(OpenStore):
    """Claim, post, note; or release, when posting failed."""

    def claim_digest(self, period: str, channel: str) -> bool:
        """Take it upon oneself to post a digest; of all that ask, one gets True.

        A claim that is neither noted nor released stays: nobody knows whether it was posted, and
        it is not posted twice.
        """
        new = {"period": period, "channel": channel, "claimed_at": self._clock()}
        with self._writing() as connection:
            if _find(connection, period, channel) is not None:
                return False
            connection.execute(insert(digests), new)
            return True

    def note_digest(self, period: str, channel: str, ts: str | None) -> None:
        """Write down that it was posted; *ts* is the message's, where Slack tells it.

        Raises UserError when nobody has claimed it.
        """
        with self._writing() as connection:
            done = connection.execute(
                update(digests).where(_on(period, channel)).values(sent_at=self._clock(), ts=ts)
            )
        if done.rowcount != 1:
            raise UserError(
                f"the store {self.shown} holds no claim of the digest of {period} for {channel}: "
                "claim it before it is posted"
            )

    def release_digest(self, period: str, channel: str) -> bool:
        """Give back what could not be posted; False when it was posted, or is not claimed."""
        unsent = _on(period, channel) & digests.c.sent_at.is_(None)
        with self._writing() as connection:
            return connection.execute(delete(digests).where(unsent)).rowcount == 1

    def digest(self, period: str, channel: str) -> Digest | None:
        """What is known of it; None: nobody has claimed it."""
        with self._reading() as connection:
            return _find(connection, period, channel)


def _find(connection: Connection, period: str, channel: str) -> Digest | None:
    row = connection.execute(select(*digests.c).where(_on(period, channel))).one_or_none()
    return None if row is None else Digest._make(row)


def _on(period: str, channel: str) -> ColumnElement[bool]:
    return (digests.c.period == period) & (digests.c.channel == channel)
