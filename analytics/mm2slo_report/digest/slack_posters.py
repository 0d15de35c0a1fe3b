"""Posts as a bot, whose messages can be updated, or through an incoming webhook.

slack-sdk retries, but only what cannot post a message twice; Slack's error codes become advice.
Source: Slack's references of chat.postMessage, chat.update and of incoming webhooks' errors.
"""

import http.client
import logging
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.error import URLError

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry import (
    BackoffRetryIntervalCalculator,
    ConnectionErrorRetryHandler,
    HttpRequest,
    HttpResponse,
    RateLimitErrorRetryHandler,
    RetryHandler,
    RetryState,
)
from slack_sdk.http_retry.builtin_handlers import ServerErrorRetryHandler
from slack_sdk.web import SlackResponse
from slack_sdk.webhook import WebhookClient

from mm2slo_core.config.secret import Secret
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

    def __init__(self, token: Secret, channel: str, *, base_url: str = WebClient.BASE_URL) -> None:
        if not _ID.fullmatch(channel):
            raise UserError(
                f"--channel {channel!r} is not the id of a Slack channel; a bot needs "
                "an id such as C0123456789 (at the end of the channel's details)"
            )
        self.channel = channel
        self._client = WebClient(token.reveal(), base_url, **_client_options())

    def post(self, message: Message) -> str:
        """Post *message*; returns its `ts`."""
        return _ts(self._client.chat_postMessage, channel=self.channel, **_new_message(message))

    def update(self, message: Message, ts: str) -> str:
        """Update the message *ts*."""
        return _ts(self._client.chat_update, channel=self.channel, ts=ts, **_content(message))


class WebhookPoster:
    """Posts to the webhook *url*; *channel* is its name in the store."""

    def __init__(self, url: Secret, channel: str) -> None:
        self.channel = channel
        self._client = WebhookClient(url.reveal(), **_client_options())

    def post(self, message: Message) -> str:
        """Post *message*; returns an empty text."""
        with _failures_as_errors():
            answer = self._client.send(**_new_message(message))
        # slack-sdk raises for no status, and Slack sends some errors with status 200.
        if answer.status_code != _OK or answer.body != "ok":
            raise _refusal(answer.status_code, answer.body or "no text", answer.headers)
        return ""

    def update(self, message: Message, ts: str) -> str:
        """Always raises MessageGoneError: webhooks cannot update messages."""
        raise MessageGoneError("a webhook cannot update a message")


def _ts(call: Callable[..., SlackResponse], **message: Any) -> str:
    """The id of the message that *call* posted or updated."""
    with _failures_as_errors():
        try:
            return str(call(**message).get("ts") or "")
        except SlackApiError as error:
            answer = error.response
    code = answer.get("error") if isinstance(answer.data, dict) else None
    raise _refusal(answer.status_code, str(code or "no text"), answer.headers)


def _content(message: Message) -> dict[str, Any]:
    return {"text": message.text, "blocks": [dict(block) for block in message.blocks]}


def _new_message(message: Message) -> dict[str, Any]:
    return {**_content(message), "unfurl_links": False, "unfurl_media": False}


def _client_options() -> dict[str, Any]:
    # Lines of slack-sdk would show a webhook's secret URL, so its logger writes nothing.
    silent = logging.Logger("slack_sdk", level=logging.CRITICAL)  # noqa: LOG001 - the root's handlers must not get its lines
    silent.addHandler(logging.NullHandler())
    return {"timeout": TIMEOUT_S, "logger": silent, "retry_handlers": retry_handlers()}


_RETRIES: Final = 3

_LONGEST_WAIT_S: Final = 60
"""Slack usually asks for a few seconds; longer waits are refused."""
_TOO_MANY: Final = 429

_NO_ANSWER: Final = frozenset({502, 504})
"""A gateway forwarded the request, but got no valid response."""
_AFTER_CONNECTING: Final = (ConnectionResetError, BrokenPipeError)

_CHECK: Final = "check the channel, and post it with --again if it is missing"
GONE: Final = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
"""The message cannot be updated, but a new one can be posted."""


def retry_handlers() -> list[RetryHandler]:
    """Wait as Slack asks on rate limits, else about 1, 2 and 4 s; at most 3 retries in all.

    A status of 500 or 503 is Slack's own report that it failed. chat.postMessage has no key that
    makes it idempotent, so whatever may have been posted is not retried: no 502 or 504, no timeout.
    """
    backoff = BackoffRetryIntervalCalculator(backoff_factor=1.0)
    return [
        _ShortRateLimits(_RETRIES),
        ServerErrorRetryHandler(_RETRIES, backoff),
        _BeforeSending(_RETRIES, backoff),
    ]


class _ShortRateLimits(RateLimitErrorRetryHandler):
    def _can_retry(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        if response is None or response.status_code != _TOO_MANY:
            return False
        # slack-sdk fails on a header that is not a whole number.
        wait = _retry_after_text(response.headers)
        return wait.isdecimal() and int(wait) <= _LONGEST_WAIT_S


class _BeforeSending(ConnectionErrorRetryHandler):
    """Retries what cannot have reached Slack, unless it will not change within seconds."""

    def _can_retry(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        if response is not None or not isinstance(error, URLError) or not _is_unsent(error):
            return False
        # An untrusted certificate stays untrusted, and a timeout has waited long enough.
        return isinstance(error.reason, OSError) and not isinstance(
            error.reason, ssl.SSLError | TimeoutError
        )


def _is_unsent(error: BaseException) -> bool:
    """Whether the request cannot have reached Slack.

    urllib (`AbstractHTTPHandler.do_open`) wraps errors until the request is sent, none after that.
    """
    return isinstance(error, URLError) and not isinstance(error.reason, _AFTER_CONNECTING)


@contextmanager
def _failures_as_errors() -> Iterator[None]:
    """Raise PostRefusedError or PostUnconfirmedError for a call that got no answer of Slack."""
    try:
        yield
    except (ValueError, LookupError) as error:
        # A response in an unknown encoding, such as a proxy's page.
        raise PostUnconfirmedError(
            f"the response cannot be decoded ({_describe_failure(error)}), so the message may "
            f"have been posted: {_CHECK}"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        if not _is_unsent(error):
            raise PostUnconfirmedError(
                f"Slack did not respond ({_describe_failure(error)}), so the message may have "
                f"been posted: {_CHECK}"
            ) from None
        raise PostRefusedError(
            f"Slack is unreachable ({_describe_failure(error)}), nothing was posted: "
            "check the network and its proxy, then run the command again"
        ) from None


def _refusal(status: int, error: str, headers: Mapping[str, str]) -> UserError:
    """The error of Slack's answer with *status* and the code *error*."""
    if status == _TOO_MANY:
        return PostRefusedError(
            f"Slack's rate limit allows no message for {_retry_after(headers):.0f} s, nothing was "
            "posted: run the command again after that"
        )
    if status in _NO_ANSWER:
        return PostUnconfirmedError(
            f"a gateway returned HTTP {status} instead of Slack's response, so the message "
            f"may have been posted: {_CHECK}"
        )
    kind = MessageGoneError if error in GONE else PostRefusedError
    return kind(f"Slack refused the digest: {describe_error(error, status)}")


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds of the Retry-After header; 1 if it is missing or not a number."""
    try:
        return max(float(_retry_after_text(headers)), 0.0)
    except ValueError:
        return 1.0


def _retry_after_text(headers: Mapping[str, Any]) -> str:
    """The Retry-After header; "1" without one, as slack-sdk waits then."""
    value = {name.lower(): each for name, each in headers.items()}.get("retry-after", "1")
    # A retry handler gets the values of a header as a list.
    return str(value if isinstance(value, str) else value[0])


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
