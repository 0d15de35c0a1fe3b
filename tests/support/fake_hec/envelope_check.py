"""Envelopes as HEC reads them, with the code of the first invalid one."""

import json
import re
from typing import Any, Final, NamedTuple

_KEYS: Final = {"time", "host", "source", "sourcetype", "index", "event", "fields"}
_BLANK: Final = re.compile(r"\s*")


class Parsed(NamedTuple):
    """Events before the first invalid one; *code* 0: all are valid.

    An unknown key is answered with success, but ends the indexing of the batch.
    """

    events: list[dict[str, Any]]
    code: int = 0
    invalid_event: int | None = None


class _Number(float):
    text: str = ""


def parse_envelopes(text: str) -> Parsed:
    decoder = json.JSONDecoder(parse_float=_number, parse_constant=_reject)
    found: list[dict[str, Any]] = []
    position = _skip(text, 0)
    if position == len(text):
        return Parsed([], 5)
    while position < len(text):
        try:
            envelope, position = decoder.raw_decode(text, position)
        except ValueError:
            return Parsed(found, 6, len(found))
        code = _code(envelope)
        if code == 5:
            return Parsed(found) if found else Parsed([], 5)
        if code:
            return Parsed(found, code, len(found))
        found.append(envelope)
        position = _skip(text, position)
    return Parsed(found)


def _code(envelope: object) -> int:
    if not isinstance(envelope, dict):
        return 6
    event = envelope.get("event")
    if envelope.keys() - _KEYS:
        return 5
    if event is None or event == "":
        return 12 if event is None else 13
    return 0 if _has_valid_time(envelope) and _has_flat_fields(envelope) else 15


def _has_valid_time(envelope: dict[str, Any]) -> bool:
    time = envelope.get("time", 0)
    if isinstance(time, _Number) and "e" in time.text.lower():
        return False
    return isinstance(time, int | float | str)


def _has_flat_fields(envelope: dict[str, Any]) -> bool:
    fields = envelope.get("fields", {})
    return isinstance(fields, dict) and not any(isinstance(each, dict) for each in fields.values())


def _number(text: str) -> float:
    number = _Number(text)
    number.text = text
    return number


def _reject(text: str) -> float:
    raise ValueError(text)


def _skip(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position
