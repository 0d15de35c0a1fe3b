"""The port through which digests are posted, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from mm2slo_report.digest.slack_message import Message


class PostRefusedError(UserError):
    """The message was not posted; the text says why and what to do."""


class MessageGoneError(PostRefusedError):
    """The message to be updated does not exist any more."""


class PostUnconfirmedError(UserError):
    """The message was sent without a response: it may have been posted."""


class Poster(Protocol):
    """Posts to one Slack channel."""

    @property
    def channel(self) -> str:
        """The channel's name in the store."""

    def post(self, message: Message) -> str:
        """Post *message*; returns its id in Slack, or an empty text.

        Raises PostRefusedError or PostUnconfirmedError.
        """

    def update(self, message: Message, ts: str) -> str:
        """Update the message *ts*. Raises MessageGoneError if it does not exist, else as `post`."""
