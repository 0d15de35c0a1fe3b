"""Posts through an incoming webhook: to one channel, without message ids."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from slack_sdk.webhook import WebhookClient

from mm2slo_report.digest.slack_client.poster import MessageGoneError
from mm2slo_report.digest.slack_client.retry import SlackReply, post_with_retries
from mm2slo_report.digest.slack_client.retry_after import retry_after
from mm2slo_report.digest.slack_client.silent_logger import silent_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_core.secret import Secret
    from mm2slo_report.digest.slack_message import Message

TIMEOUT_S: Final = 10
_OK: Final = 200


class WebhookPoster:
    """Posts to the webhook *url*; *channel* is its name in the store."""

    def __init__(
        self, url: Secret, channel: str, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.channel = channel
        self._sleep = sleep
        self._client = WebhookClient(
            url.reveal(), timeout=TIMEOUT_S, logger=silent_logger(), retry_handlers=[]
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
            answer.status_code, answer.body or "no text", retry_after(dict(answer.headers))
        )
