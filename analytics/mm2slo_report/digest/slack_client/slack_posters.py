"""Posts as a bot, whose messages can be updated, or through an incoming webhook."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Final

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook import WebhookClient

from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.slack_client.poster import MessageGoneError
from mm2slo_report.digest.slack_client.retry import SlackReply, post_with_retries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slack_sdk.web import SlackResponse

    from mm2slo_core.secret import Secret
    from mm2slo_report.digest.slack_message import Message

TIMEOUT_S: Final = 10
_ID: Final = re.compile(r"[CGD][A-Z0-9]{7,20}", re.ASCII)
_OK: Final = 200


class BotPoster:
    """Posts as the bot of *token* to a channel given by its id, such as C0123456789.

    Raises UserError for a channel's name: Slack updates messages by channel id only.
    """

    def __init__(
        self,
        token: Secret,
        channel: str,
        *,
        base_url: str = WebClient.BASE_URL,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if not _ID.fullmatch(channel):
            raise UserError(
                f"--channel {channel!r} is not the id of a Slack channel; a bot needs "
                "an id such as C0123456789 (at the end of the channel's details)"
            )
        self.channel = channel
        self._sleep = sleep
        self._client = WebClient(
            token.reveal(), base_url, timeout=TIMEOUT_S, logger=_silent_logger(), retry_handlers=[]
        )

    def post(self, message: Message) -> str:
        """Post *message*; returns its `ts`."""
        return self._post_with_retries(
            lambda: self._client.chat_postMessage(
                channel=self.channel,
                text=message.text,
                blocks=[dict(block) for block in message.blocks],
                unfurl_links=False,
                unfurl_media=False,
            )
        )

    def update(self, message: Message, ts: str) -> str:
        """Update the message *ts*."""
        return self._post_with_retries(
            lambda: self._client.chat_update(
                channel=self.channel,
                ts=ts,
                text=message.text,
                blocks=[dict(block) for block in message.blocks],
            )
        )

    def _post_with_retries(self, call: Callable[[], SlackResponse]) -> str:
        return post_with_retries(lambda: _call_slack(call), self._sleep)


class WebhookPoster:
    """Posts to the webhook *url*; *channel* is its name in the store."""

    def __init__(
        self, url: Secret, channel: str, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.channel = channel
        self._sleep = sleep
        self._client = WebhookClient(
            url.reveal(), timeout=TIMEOUT_S, logger=_silent_logger(), retry_handlers=[]
        )

    def post(self, message: Message) -> str:
        """Post *message*; returns an empty text."""
        return post_with_retries(lambda: self._send(message), self._sleep)

    def update(self, message: Message, ts: str) -> str:
        """Always raises MessageGoneError: webhooks cannot update messages."""
        raise MessageGoneError("a webhook cannot update a message")

    def _send(self, message: Message) -> SlackReply:
        answer = self._client.send(
            text=message.text,
            blocks=[dict(block) for block in message.blocks],
            unfurl_links=False,
            unfurl_media=False,
        )
        # slack-sdk raises for no status, and Slack sends some errors with status 200.
        if answer.status_code == _OK and answer.body == "ok":
            return SlackReply(answer.status_code)
        return SlackReply(
            answer.status_code, answer.body or "no text", _retry_after(dict(answer.headers))
        )


def _call_slack(call: Callable[[], SlackResponse]) -> SlackReply:
    try:
        answer = call()
    except SlackApiError as error:
        response = error.response
        code = response.get("error") if isinstance(response.data, dict) else None
        return SlackReply(
            response.status_code, str(code or "no text"), _retry_after(dict(response.headers))
        )
    return SlackReply(answer.status_code, ts=str(answer.get("ts") or ""))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of the Retry-After header; None if it is missing or not a number."""
    value = {name.lower(): text for name, text in headers.items()}.get("retry-after")
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None


def _silent_logger() -> logging.Logger:
    """A logger that writes nothing: lines of slack-sdk would show a webhook's secret URL."""
    found = logging.Logger("slack_sdk", level=logging.CRITICAL)  # noqa: LOG001 - the root's handlers must not get its lines
    found.addHandler(logging.NullHandler())
    return found
