"""Posts as a bot, whose messages can be updated, or through an incoming webhook.

Posts are retried wherever that cannot post them twice; Slack's error codes become advice.
Source: Slack's references of chat.postMessage, chat.update and of incoming webhooks' errors.
"""

from __future__ import annotations

import http.client
import logging
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.error import URLError

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.web import SlackResponse
from slack_sdk.webhook import WebhookClient

from mm2slo_core.config.field_types import Secret
from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.digest_message import Message
from mm2slo_report.digest.slo_digest import MessageGoneError, PostRefusedError, PostUnconfirmedError

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


_ATTEMPTS: Final = 4
_FIRST_WAIT_S: Final = 1.0

_LONGEST_WAIT_S: Final = 60.0
"""Slack usually asks for a few seconds; longer waits are refused."""
_TOO_MANY: Final = 429

_BROKEN: Final = frozenset({500, 503})
"""Slack reports that it failed."""

_NO_ANSWER: Final = frozenset({502, 504})
"""A gateway forwarded the request, but got no valid response."""
_AFTER_CONNECTING: Final = (ConnectionResetError, BrokenPipeError)


class SlackReply(NamedTuple):
    """Slack's response to one attempt; `error` is empty on success."""

    status: int
    error: str = ""
    retry_after: float | None = None
    ts: str = ""


def post_with_retries(attempt: Callable[[], SlackReply], sleep: Callable[[float], object]) -> str:
    """Call *attempt* at most 4 times; returns the message's id.

    Waits as long as Slack asks on rate limits, and 1, 2 and 4 s if Slack fails or is unreachable.
    Does not retry what may have been posted. Raises PostRefusedError, MessageGoneError,
    PostUnconfirmedError.
    """
    for retry in (*range(1, _ATTEMPTS), None):
        try:
            reply = attempt()
        except (ValueError, LookupError) as error:
            # A response in an unknown encoding, such as a proxy's page.
            raise PostUnconfirmedError(
                f"the response cannot be decoded ({_describe_failure(error)}), so the message may "
                "have "
                "been posted: check the channel, and post it with --again if it is missing"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            if not _is_before_sending(error):
                raise PostUnconfirmedError(
                    f"Slack did not respond ({_describe_failure(error)}), so the message may have "
                    "been "
                    "posted: check the channel, and post it with --again if it is missing"
                ) from None
            if retry is None or not _is_transient(error):
                raise PostRefusedError(
                    f"Slack is unreachable ({_describe_failure(error)}), nothing was posted: "
                    "check the "
                    "network and its proxy, then run the command again"
                ) from None
            wait = _backoff(retry)
        else:
            if not reply.error:
                return reply.ts
            wait = _wait(reply, retry)
        sleep(wait)
    raise AssertionError("the last attempt ends above")


def _wait(reply: SlackReply, retry: int | None) -> float:
    """Seconds until the next attempt. Raises if there should be none."""
    if reply.status == _TOO_MANY:
        wait = _FIRST_WAIT_S if reply.retry_after is None else max(reply.retry_after, 0.0)
        if retry is None or wait > _LONGEST_WAIT_S:
            raise PostRefusedError(
                f"Slack's rate limit allows no message for {wait:.0f} s, nothing was posted: "
                "run the command again after that"
            )
        return wait
    if reply.status in _NO_ANSWER:
        raise PostUnconfirmedError(
            f"a gateway returned HTTP {reply.status} instead of Slack's response, so the message "
            "may have been posted: check the channel, and post it with --again if it is missing"
        )
    if reply.status in _BROKEN and retry is not None:
        return _backoff(retry)
    kind = MessageGoneError if reply.error in GONE else PostRefusedError
    raise kind(f"Slack refused the digest: {describe_error(reply.error, reply.status)}")


def _backoff(retry: int) -> float:
    return _FIRST_WAIT_S * 2.0 ** (retry - 1)


def _is_before_sending(error: BaseException) -> bool:
    """Whether the request cannot have reached Slack.

    urllib wraps errors until the request is sent, and none after that.
    """
    if not isinstance(error, URLError):
        return False
    return not isinstance(error.reason, _AFTER_CONNECTING)


def _is_transient(error: BaseException) -> bool:
    """Whether another attempt may succeed soon; it does not with an untrusted certificate."""
    reason = error.reason if isinstance(error, URLError) else error
    return isinstance(reason, ConnectionRefusedError | socket.gaierror) or (
        isinstance(reason, OSError) and not isinstance(reason, ssl.SSLError | TimeoutError)
    )


def _describe_failure(error: BaseException) -> str:
    """The error's type and message, without URLs."""
    reason = error.reason if isinstance(error, URLError) else error
    text = getattr(reason, "strerror", None) or ""
    return f"{type(reason).__name__}: {text}" if text else type(reason).__name__


_CODE: Final = re.compile(r"[a-z][a-z0-9_]{2,60}", re.ASCII)
_MAX_QUOTE: Final = 80
_TOKEN: Final = "write a valid bot token (xoxb-...) to the token file"
_WEBHOOK: Final = "create a new incoming webhook in Slack and write its URL to the webhook file"
_BUG: Final = "this is a bug in mm2slo: report it with the output of --dry-run --json"
_ADMIN: Final = "ask an administrator of the Slack workspace for permission"

GONE: Final = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
"""The message cannot be updated, but a new one can be posted."""

_ADVICE: Final = {
    "channel_not_found": (
        "give the channel's id, such as C0123456789 (at the end of the channel's details), and "
        "invite the bot if the channel is private"
    ),
    "not_in_channel": "invite the bot with /invite @its-name in the channel",
    "is_archived": "the channel is archived: choose another one",
    "channel_is_archived": "the channel is archived: create a webhook for another one",
    "invalid_auth": _TOKEN,
    "not_authed": _TOKEN,
    "account_inactive": f"the bot was removed: {_TOKEN}",
    "token_revoked": _TOKEN,
    "token_expired": _TOKEN,
    "not_allowed_token_type": _TOKEN,
    "missing_scope": "give the app the scope chat:write and reinstall it",
    "restricted_action": _ADMIN,
    "restricted_action_read_only_channel": _ADMIN,
    "action_prohibited": _ADMIN,
    "posting_to_general_channel_denied": _ADMIN,
    "ekm_access_denied": _ADMIN,
    "team_access_not_granted": _ADMIN,
    "access_denied": _ADMIN,
    "no_permission": _ADMIN,
    "team_disabled": _ADMIN,
    "no_service": _WEBHOOK,
    "no_service_id": _WEBHOOK,
    "no_team": _WEBHOOK,
    "no_active_hooks": _WEBHOOK,
    "invalid_token": _WEBHOOK,
    "user_not_found": _WEBHOOK,
    "invalid_payload": _BUG,
    "invalid_blocks": _BUG,
    "invalid_blocks_format": _BUG,
    "invalid_arguments": _BUG,
    "msg_too_long": _BUG,
    "msg_blocks_too_long": _BUG,
    "too_many_attachments": _BUG,
    "no_text": _BUG,
}


def describe_error(error: str, status: int) -> str:
    """Slack's *error* with its fix."""
    code = error.strip()
    known = _ADVICE.get(code)
    if known is not None:
        return f"{code}: {known}"
    if not _CODE.fullmatch(code):
        # A proxy's page, not Slack's response.
        line = " ".join(code.split())[:_MAX_QUOTE]
        received = f"HTTP {status}" + (f", {line!r}" if line else " with an empty body")
        return f"{received} is not a response of Slack: check proxies between this host and Slack"
    return f"{code} (HTTP {status}): look up this error in Slack's API reference"
