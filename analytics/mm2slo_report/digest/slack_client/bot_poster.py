"""Posts as a bot, to any channel it was invited to; its messages can be updated."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.slack_client.retry import SlackReply, post_with_retries
from mm2slo_report.digest.slack_client.retry_after import retry_after
from mm2slo_report.digest.slack_client.silent_logger import silent_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from slack_sdk.web import SlackResponse

    from mm2slo_core.secret import Secret
    from mm2slo_report.digest.slack_message import Message

TIMEOUT_S: Final = 10
_ID: Final = re.compile(r"[CGD][A-Z0-9]{7,20}", re.ASCII)


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
            token.reveal(), base_url, timeout=TIMEOUT_S, logger=silent_logger(), retry_handlers=[]
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


def _call_slack(call: Callable[[], SlackResponse]) -> SlackReply:
    try:
        answer = call()
    except SlackApiError as error:
        response = error.response
        code = response.get("error") if isinstance(response.data, dict) else None
        return SlackReply(
            response.status_code, str(code or "no text"), retry_after(dict(response.headers))
        )
    return SlackReply(answer.status_code, ts=str(answer.get("ts") or ""))
