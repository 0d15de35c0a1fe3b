"""What posting needs of a way to Slack, and how it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from mm2slo_report.digest.message import Message


class Refused(UserError):  # noqa: N818 - named for what is so; the base says it is an error
    """The message was not posted; the text says why, and what to do."""


class Gone(Refused):
    """The message that was to be changed is there no more."""


class Unsure(UserError):  # noqa: N818 - as above
    """The message was sent, and no answer came: it may be posted."""


class Poster(Protocol):
    """One channel of Slack."""

    @property
    def channel(self) -> str:
        """By the name that it is kept under."""

    def post(self, message: Message) -> str:
        """Post it; Slack's id of the message, empty where it gives none.

        Raises Refused or Unsure.
        """

    def update(self, message: Message, ts: str) -> str:
        """Change the message of that id. Raises Gone where there is none, else as `post`."""
