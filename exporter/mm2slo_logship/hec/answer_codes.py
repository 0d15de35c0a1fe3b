"""What each answer of the HTTP Event Collector means for the sender.

Codes and texts: Splunk, "Troubleshoot HTTP Event Collector"; 24 to 28 as measured on Splunk 10.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Action(StrEnum):
    """What to do with a request after its answer."""

    ACCEPTED = "accepted"
    SLOW_DOWN = "slow_down"  # accepted, but the queues are filling
    RETRY = "retry"
    HOLD = "hold"  # wrong configuration: nothing is sent until it is fixed, nothing is dropped
    SPLIT = "split"  # one event is invalid: those before it are accepted
    TOO_LARGE = "too_large"  # send it in halves
    NO_ACK = "no_ack"  # the token has no acknowledgement: go on without


CODES: Final[Mapping[int, Action]] = MappingProxyType(
    {
        0: Action.ACCEPTED,
        1: Action.HOLD,  # token disabled
        2: Action.HOLD,  # token is required
        3: Action.HOLD,  # invalid authorization
        4: Action.HOLD,  # invalid token
        5: Action.SPLIT,  # no data: an unknown key in the envelope
        6: Action.SPLIT,  # invalid data format
        7: Action.HOLD,  # incorrect index
        8: Action.RETRY,  # internal server error
        9: Action.RETRY,  # server is busy
        10: Action.HOLD,  # data channel is missing
        11: Action.HOLD,  # invalid data channel
        12: Action.SPLIT,  # event field is required
        13: Action.SPLIT,  # event field cannot be blank
        14: Action.NO_ACK,  # acknowledgement is disabled
        15: Action.SPLIT,  # error in handling indexed fields
        16: Action.HOLD,  # query string authorization is not enabled
        17: Action.ACCEPTED,  # healthy
        18: Action.RETRY,  # queues are full
        19: Action.RETRY,  # acknowledgement service is unavailable
        20: Action.RETRY,  # both
        21: Action.HOLD,  # invalid token
        22: Action.HOLD,  # token disabled
        23: Action.RETRY,  # server is shutting down
        24: Action.SLOW_DOWN,  # queue is approaching its capacity
        25: Action.SLOW_DOWN,  # acknowledgement channel is approaching its capacity
        26: Action.RETRY,  # queue is at its capacity
        27: Action.RETRY,  # acknowledgement channel is at its capacity
        28: Action.HOLD,  # data channel is missing
    }
)

_BY_STATUS: Final[Mapping[int, Action]] = MappingProxyType(
    {408: Action.RETRY, 413: Action.TOO_LARGE, 429: Action.RETRY}
)


def action_of(status: int, code: int | None) -> Action:
    """The action for a HEC code; for an unknown or missing one, that of the HTTP status.

    A success without a code does not come from HEC, but from a proxy or a login page. An unknown
    client error holds, since it cannot be known whether the events are at fault.
    """
    if code is not None and code in CODES:
        return CODES[code]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 500:
        return Action.HOLD
    if 200 <= status < 300 and code is not None:
        return Action.ACCEPTED
    return Action.RETRY
