"""Event envelopes: one JSON object per event, written one after another."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

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
