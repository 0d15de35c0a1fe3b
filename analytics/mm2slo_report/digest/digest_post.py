"""Posts each digest once: only the process that claims its period and channel posts it."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING

from mm2slo_report.digest.slack_client.poster import MessageGoneError, PostRefusedError

if TYPE_CHECKING:
    from mm2slo_report.digest.slack_client.poster import Poster
    from mm2slo_report.digest.slack_message import Message
    from mm2slo_store.digest_claims import DigestClaims


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
