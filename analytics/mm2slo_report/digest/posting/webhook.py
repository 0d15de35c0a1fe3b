"""An incoming webhook: one channel, no ids of messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from slack_sdk.webhook import WebhookClient

from mm2slo_report.digest.posting.patience import Reply, patiently
from mm2slo_report.digest.posting.port import Gone
from mm2slo_report.digest.posting.quiet import quiet
from mm2slo_report.digest.posting.waits import retry_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_core.secret import Secret
    from mm2slo_report.digest.message import Message

TIMEOUT_S: Final = 10
_OK: Final = 200


class WebhookPoster:
    """Posts to the webhook at the address *url*; *channel* is its name here."""

    def __init__(
        self, url: Secret, channel: str, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.channel = channel
        self._sleep = sleep
        self._client = WebhookClient(
            url.reveal(), timeout=TIMEOUT_S, logger=quiet(), retry_handlers=[]
        )

    def post(self, message: Message) -> str:
        """Post it; no id."""
        return patiently(lambda: self._send(message), self._sleep)

    def update(self, message: Message, ts: str) -> str:
        """A webhook changes no message."""
        raise Gone("a webhook cannot change a message")

    def _send(self, message: Message) -> Reply:
        answer = self._client.send(
            text=message.text,
            blocks=[dict(block) for block in message.blocks],
            unfurl_links=False,
            unfurl_media=False,
        )
        # slack-sdk raises for no status, and Slack says some refusals with 200.
        if answer.status_code == _OK and answer.body == "ok":
            return Reply(answer.status_code)
        return Reply(
            answer.status_code, answer.body or "no text", retry_after(dict(answer.headers))
        )
