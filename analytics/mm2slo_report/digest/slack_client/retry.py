"""Retries of a post to Slack, wherever they cannot post it twice."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.error import URLError

from mm2slo_report.digest.slack_client.poster import (
    MessageGoneError,
    PostRefusedError,
    PostUnconfirmedError,
)
from mm2slo_report.digest.slack_client.slack_errors import GONE, describe_error

if TYPE_CHECKING:
    from collections.abc import Callable

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
                f"the response cannot be decoded ({_describe(error)}), so the message may have "
                "been posted: check the channel, and post it with --again if it is missing"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            if not _is_before_sending(error):
                raise PostUnconfirmedError(
                    f"Slack did not respond ({_describe(error)}), so the message may have been "
                    "posted: check the channel, and post it with --again if it is missing"
                ) from None
            if retry is None or not _is_transient(error):
                raise PostRefusedError(
                    f"Slack is unreachable ({_describe(error)}), nothing was posted: check the "
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


def _describe(error: BaseException) -> str:
    """The error's type and message, without URLs."""
    reason = error.reason if isinstance(error, URLError) else error
    text = getattr(reason, "strerror", None) or ""
    return f"{type(reason).__name__}: {text}" if text else type(reason).__name__
