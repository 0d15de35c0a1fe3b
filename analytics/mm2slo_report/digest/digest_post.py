"""Posts each digest once: only the process that claims its period and channel posts it."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from mm2slo_report.digest.slack_client.poster import MessageGoneError, PostRefusedError

if TYPE_CHECKING:
    from mm2slo_report.digest.slack_client.poster import Poster
    from mm2slo_report.digest.slack_message import Message


class DigestClaim(Protocol):
    """The state of a digest; times are epoch ms."""

    @property
    def claimed_at(self) -> int:
        """When a process claimed it."""

    @property
    def sent_at(self) -> int | None:
        """When it was posted; None: not known to be posted."""

    @property
    def ts(self) -> str | None:
        """Slack's id of the message; None for webhooks."""


class DigestClaims(Protocol):
    """Claims of digests, shared by processes."""

    def claim_digest(self, period: str, channel: str) -> bool:
        """Claim a digest; False if it is claimed already. A caller that gets True must post it."""

    def mark_digest_posted(self, period: str, channel: str, ts: str | None) -> None:
        """Record that it was posted."""

    def release_digest(self, period: str, channel: str) -> object:
        """Withdraw the claim: it was not posted, and others may try."""

    def digest_claim(self, period: str, channel: str) -> DigestClaim | None:
        """The claim; None: not claimed."""


class PostResult(StrEnum):
    """Result of posting a digest."""

    POSTED = "posted"
    UPDATED = "updated"
    """The existing message was updated."""
    POSTED_BEFORE = "posted before"
    CLAIMED = "claimed"
    """Another process is posting it, or was killed while doing so."""


def post_once(
    message: Message, poster: Poster, digests: DigestClaims, *, period: str, again: bool = False
) -> PostResult:
    """Post *message* for *period* to the poster's channel, unless it was posted before.

    *again* posts it again, or updates the existing message if the poster can. Raises
    PostRefusedError if Slack refused it, so that it can be tried again, and PostUnconfirmedError
    if the result is unknown, which keeps the claim.
    """
    channel = poster.channel
    claimed = digests.claim_digest(period, channel)
    before = None if claimed else digests.digest_claim(period, channel)
    if not claimed and not again:
        sent = before is not None and before.sent_at is not None
        return PostResult.POSTED_BEFORE if sent else PostResult.CLAIMED
    if before is not None and before.ts:
        with suppress(MessageGoneError):
            ts = poster.update(message, before.ts)
            digests.mark_digest_posted(period, channel, ts or before.ts)
            return PostResult.UPDATED
    try:
        ts = poster.post(message)
    except PostRefusedError:
        if claimed:
            digests.release_digest(period, channel)
        raise
    digests.mark_digest_posted(period, channel, ts or None)
    return PostResult.POSTED
