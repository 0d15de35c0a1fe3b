"""Each digest once: whoever claims its period and channel first posts it."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from mm2slo_report.digest.posting.port import Gone, Refused

if TYPE_CHECKING:
    from mm2slo_report.digest.message import Message
    from mm2slo_report.digest.posting.port import Poster


class KeptDigest(Protocol):
    """What is kept of a digest; times are epoch ms."""

    @property
    def claimed_at(self) -> int:
        """When somebody took it upon themselves to post it."""

    @property
    def sent_at(self) -> int | None:
        """When it was posted; None: not, as far as is known."""

    @property
    def ts(self) -> str | None:
        """Slack's id of the message; None of a webhook's."""


class Digests(Protocol):
    """Where it is kept which digests were posted; shared by processes."""

    def claim_digest(self, period: str, channel: str) -> bool:
        """Whether nobody else claimed it before: a caller that gets True must post."""

    def note_digest(self, period: str, channel: str, ts: str | None) -> None:
        """It was posted."""

    def release_digest(self, period: str, channel: str) -> object:
        """It was not posted: others may try."""

    def digest(self, period: str, channel: str) -> KeptDigest | None:
        """What is known of it; None: nobody claimed it."""


class Outcome(StrEnum):
    """What became of a digest."""

    POSTED = "posted"
    UPDATED = "updated"
    """The message that was there says the new figures."""
    POSTED_BEFORE = "posted before"
    CLAIMED = "claimed"
    """Another process posts it now, or was ended while it did."""


def post_once(
    message: Message, poster: Poster, digests: Digests, *, period: str, again: bool = False
) -> Outcome:
    """Post *message* for *period* to the poster's channel, unless that was done before.

    *again* posts anyway; where the poster can, it changes the message that is there. Raises
    Refused when Slack did not take it: it may then be tried again; Unsure when nobody knows, and
    then it counts as claimed.
    """
    channel = poster.channel
    claimed = digests.claim_digest(period, channel)
    before = None if claimed else digests.digest(period, channel)
    if not claimed and not again:
        sent = before is not None and before.sent_at is not None
        return Outcome.POSTED_BEFORE if sent else Outcome.CLAIMED
    if before is not None and before.ts:
        with suppress(Gone):
            ts = poster.update(message, before.ts)
            digests.note_digest(period, channel, ts or before.ts)
            return Outcome.UPDATED
    try:
        ts = poster.post(message)
    except Refused:
        if claimed:
            digests.release_digest(period, channel)
        raise
    digests.note_digest(period, channel, ts or None)
    return Outcome.POSTED
