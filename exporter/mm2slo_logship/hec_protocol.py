"""Splunk's HTTP Event Collector: event envelopes, answers and what they mean; without I/O.

Codes and texts: Splunk, "Troubleshoot HTTP Event Collector"; 24 to 28 as measured on Splunk 10.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import orjson

_LONGEST_RETRY_AFTER: Final = 300.0
_SHOWN: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class HecAnswer:
    """`is_ambiguous`: the request may have been accepted; a retry may duplicate its events."""

    action: AnswerAction
    status: int = 0  # 0: no response
    code: int | None = None
    text: str = ""
    invalid_event: int | None = None
    ack_id: int | None = None
    retry_after: float | None = None
    is_ambiguous: bool = False

    @property
    def code_label(self) -> str:
        """The value of the label `code`."""
        return "none" if self.code is None else str(self.code)

    def __str__(self) -> str:
        if not self.status:
            return self.text
        code = "without a HEC code" if self.code is None else f"code {self.code}"
        return f"HTTP {self.status}, {code}: {self.text}"


def read_answer(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> HecAnswer:
    """Read a response; a body that is not from HEC is quoted, as proxies answer in HTML."""
    found = _object(body)
    code = _whole(found.get("code"))
    text = found.get("text")
    quoted = body[:_SHOWN].decode("ascii", "replace").replace("\n", " ")
    action = action_of(status, code)
    return HecAnswer(
        action=action,
        status=status,
        code=code,
        text=text if isinstance(text, str) else f"not an answer of HEC: {quoted!r}",
        invalid_event=_whole(found.get("invalid-event-number")),
        ack_id=_whole(found.get("ackId")),
        retry_after=_retry_after(headers.get("Retry-After"), now),
        is_ambiguous=action is AnswerAction.RETRY and 200 <= status < 300,
    )


def _object(body: bytes) -> Mapping[str, object]:
    try:
        found = orjson.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds of `Retry-After`, a number or a date (RFC 9110, 10.2.3), at most 5 minutes."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER)


class AnswerAction(StrEnum):
    """What to do with a request after its answer."""

    ACCEPTED = "accepted"
    SLOW_DOWN = "slow_down"  # accepted, but the queues are filling
    RETRY = "retry"
    HOLD = "hold"  # wrong configuration: nothing is sent until it is fixed, nothing is dropped
    SPLIT = "split"  # one event is invalid: those before it are accepted
    TOO_LARGE = "too_large"  # send it in halves
    NO_ACK = "no_ack"  # the token has no acknowledgement: go on without


CODES: Final[Mapping[int, AnswerAction]] = MappingProxyType(
    {
        0: AnswerAction.ACCEPTED,
        1: AnswerAction.HOLD,  # token disabled
        2: AnswerAction.HOLD,  # token is required
        3: AnswerAction.HOLD,  # invalid authorization
        4: AnswerAction.HOLD,  # invalid token
        5: AnswerAction.SPLIT,  # no data: an unknown key in the envelope
        6: AnswerAction.SPLIT,  # invalid data format
        7: AnswerAction.HOLD,  # incorrect index
        8: AnswerAction.RETRY,  # internal server error
        9: AnswerAction.RETRY,  # server is busy
        10: AnswerAction.HOLD,  # data channel is missing
        11: AnswerAction.HOLD,  # invalid data channel
        12: AnswerAction.SPLIT,  # event field is required
        13: AnswerAction.SPLIT,  # event field cannot be blank
        14: AnswerAction.NO_ACK,  # acknowledgement is disabled
        15: AnswerAction.SPLIT,  # error in handling indexed fields
        16: AnswerAction.HOLD,  # query string authorization is not enabled
        17: AnswerAction.ACCEPTED,  # healthy
        18: AnswerAction.RETRY,  # queues are full
        19: AnswerAction.RETRY,  # acknowledgement service is unavailable
        20: AnswerAction.RETRY,  # both
        21: AnswerAction.HOLD,  # invalid token
        22: AnswerAction.HOLD,  # token disabled
        23: AnswerAction.RETRY,  # server is shutting down
        24: AnswerAction.SLOW_DOWN,  # queue is approaching its capacity
        25: AnswerAction.SLOW_DOWN,  # acknowledgement channel is approaching its capacity
        26: AnswerAction.RETRY,  # queue is at its capacity
        27: AnswerAction.RETRY,  # acknowledgement channel is at its capacity
        28: AnswerAction.HOLD,  # data channel is missing
    }
)

_BY_STATUS: Final[Mapping[int, AnswerAction]] = MappingProxyType(
    {408: AnswerAction.RETRY, 413: AnswerAction.TOO_LARGE, 429: AnswerAction.RETRY}
)


def action_of(status: int, code: int | None) -> AnswerAction:
    """The action for a HEC code; for an unknown or missing one, that of the HTTP status.

    A success without a code does not come from HEC, but from a proxy or a login page. An unknown
    client error holds, since it cannot be known whether the events are at fault.
    """
    if code is not None and code in CODES:
        return CODES[code]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 500:
        return AnswerAction.HOLD
    if 200 <= status < 300 and code is not None:
        return AnswerAction.ACCEPTED
    return AnswerAction.RETRY


_LATEST: Final = 1e11  # seconds; beyond it, a time is a mistake


def envelope_start(*, host: str, source: str, sourcetype: str, index: str | None) -> bytes:
    """What the envelopes of a file have in common; an absent index is the token's."""
    keys = {"host": host, "source": source, "sourcetype": sourcetype}
    if index is not None:
        keys["index"] = index
    return orjson.dumps(keys)[:-1]


def envelope(start: bytes, time: float | None, event: Mapping[str, object]) -> bytes:
    """An envelope; without *time*, Splunk takes the time of receipt.

    The time never has an exponent, which Splunk 10 rejects.
    """
    try:
        body = orjson.dumps(event)
    except TypeError:  # a lone surrogate, a large number
        body = json.dumps(event, default=str, skipkeys=True).encode()
    if time is None or not math.isfinite(time) or not 0 <= time < _LATEST:
        return b'%b,"event":%b}\n' % (start, body)
    return b'%b,"time":%.6f,"event":%b}\n' % (start, time, body)
