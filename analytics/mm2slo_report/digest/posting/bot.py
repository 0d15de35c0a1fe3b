"""A bot: any channel that it was invited to, and messages that can be changed."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from mm2slo_core.errors import UserError
from mm2slo_report.digest.posting.patience import Reply, patiently
from mm2slo_report.digest.posting.quiet import quiet
from mm2slo_report.digest.posting.waits import retry_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from slack_sdk.web import SlackResponse

    from mm2slo_core.secret import Secret
    from mm2slo_report.digest.message import Message

TIMEOUT_S: Final = 10
_ID: Final = re.compile(r"[CGD][A-Z0-9]{7,20}", re.ASCII)


class BotPoster:
    """Posts as the bot of *token* to the channel of that id, as in C0123456789.

    Raises UserError for a channel's name: Slack changes messages by its id alone.
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
                f"--channel {channel!r} is no id of a Slack channel, which a bot needs: write it "
                "as in C0123456789 (at the end of the channel's details)"
            )
        self.channel = channel
        self._sleep = sleep
        self._client = WebClient(
            token.reveal(), base_url, timeout=TIMEOUT_S, logger=quiet(), retry_handlers=[]
        )

    def post(self, message: Message) -> str:
        """Post it; the message's `ts`."""
        return self._patiently(
            lambda: self._client.chat_postMessage(
                channel=self.channel,
                text=message.text,
                blocks=[dict(block) for block in message.blocks],
                unfurl_links=False,
                unfurl_media=False,
            )
        )

    def update(self, message: Message, ts: str) -> str:
        """Change the message *ts*."""
        return self._patiently(
            lambda: self._client.chat_update(
                channel=self.channel,
                ts=ts,
                text=message.text,
                blocks=[dict(block) for block in message.blocks],
            )
        )

    def _patiently(self, call: Callable[[], SlackResponse]) -> str:
        return patiently(lambda: _reply(call), self._sleep)


def _reply(call: Callable[[], SlackResponse]) -> Reply:
    try:
        answer = call()
    except SlackApiError as error:
        response = error.response
        told = response.get("error") if isinstance(response.data, dict) else None
        return Reply(
            response.status_code, str(told or "no text"), retry_after(dict(response.headers))
        )
    return Reply(answer.status_code, ts=str(answer.get("ts") or ""))
