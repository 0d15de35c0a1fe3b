"""Trying again, where that cannot post twice, and for how long."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.error import URLError

from mm2slo_report.digest.posting.advice import GONE, advice
from mm2slo_report.digest.posting.port import Gone, Refused, Unsure

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES: Final = 4
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
"""Slack asks for a few seconds; an hour is not waited for here."""
_TOO_MANY: Final = 429
_BROKEN: Final = frozenset({500, 503})
"""Slack failed, and says so."""
_NO_ANSWER: Final = frozenset({502, 504})
"""A gateway passed the request on, and got no answer that it could pass back."""
_AFTER_CONNECTING: Final = (ConnectionResetError, BrokenPipeError)


class Reply(NamedTuple):
    """Slack's answer to one attempt; `error` is empty when it was taken."""

    status: int
    error: str = ""
    retry_after: float | None = None
    ts: str = ""


def patiently(attempt: Callable[[], Reply], sleep: Callable[[float], object]) -> str:
    """Make *attempt* until Slack answers for good, at most 4 times; the message's id.

    Rate limits are waited for as Slack asks, failures of Slack 1, 2 and 4 s, as are servers that
    are not reached. What may have been posted is not tried again. Raises Refused, Gone, Unsure.
    """
    for again in (*range(1, _TRIES), None):
        try:
            reply = attempt()
        except (ValueError, LookupError) as error:
            # An answer in no known alphabet, as a proxy's page may be.
            raise Unsure(
                f"what answered cannot be read ({_named(error)}): Slack may have taken the "
                "message; look at the channel, and post it with --again if it is not there"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            if not _before_sending(error):
                raise Unsure(
                    f"Slack did not answer ({_named(error)}): it may have taken the message; look "
                    "at the channel, and post it with --again if it is not there"
                ) from None
            if again is None or not _may_pass(error):
                raise Refused(
                    f"Slack was not reached ({_named(error)}): nothing was posted; check the "
                    "network and its proxy, and run it again"
                ) from None
            wait = _backoff(again)
        else:
            if not reply.error:
                return reply.ts
            wait = _wait(reply, again)
        sleep(wait)
    raise AssertionError("the last attempt ends above")


def _wait(reply: Reply, again: int | None) -> float:
    """How long to wait before the next attempt. Raises where there should be none."""
    if reply.status == _TOO_MANY:
        wait = _FIRST_WAIT_S if reply.retry_after is None else max(reply.retry_after, 0.0)
        if again is None or wait > _LONGEST_WAIT_S:
            raise Refused(
                f"Slack takes no more messages for {wait:.0f} s: nothing was posted; "
                "run it again after that"
            )
        return wait
    if reply.status in _NO_ANSWER:
        raise Unsure(
            f"no answer of Slack came through (HTTP {reply.status}): it may have taken the "
            "message; look at the channel, and post it with --again if it is not there"
        )
    if reply.status in _BROKEN and again is not None:
        return _backoff(again)
    kind = Gone if reply.error in GONE else Refused
    raise kind(f"Slack refused the digest: {advice(reply.error, reply.status)}")


def _backoff(again: int) -> float:
    return _FIRST_WAIT_S * 2.0 ** (again - 1)


def _before_sending(error: BaseException) -> bool:
    """Whether the request cannot have reached Slack.

    urllib wraps what happens until the request is sent, and nothing of what comes after.
    """
    if not isinstance(error, URLError):
        return False
    return not isinstance(error.reason, _AFTER_CONNECTING)


def _may_pass(error: BaseException) -> bool:
    """Whether another attempt may succeed soon: not with a certificate that is not trusted."""
    reason = error.reason if isinstance(error, URLError) else error
    return isinstance(reason, ConnectionRefusedError | socket.gaierror) or (
        isinstance(reason, OSError) and not isinstance(reason, ssl.SSLError | TimeoutError)
    )


def _named(error: BaseException) -> str:
    """Its kind and words; addresses are not in them."""
    reason = error.reason if isinstance(error, URLError) else error
    words = getattr(reason, "strerror", None) or ""
    return f"{type(reason).__name__}: {words}" if words else type(reason).__name__
