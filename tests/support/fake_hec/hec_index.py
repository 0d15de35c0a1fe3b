"""Tokens, indexes and acknowledgements of the stand-in."""

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fake_hec.answer_facts import FACTS
from fake_hec.envelope_check import parse_envelopes

Reply = tuple[int, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HecToken:
    indexes: tuple[str, ...] = ()  # empty: any
    has_ack: bool = False
    is_disabled: bool = False


def reply(code: int, **more: object) -> Reply:
    fact = FACTS[code]
    return fact.status, {"text": fact.text, "code": code, **more}


class HecIndex:
    """What was indexed, in order; thread-safe."""

    def __init__(self, tokens: Mapping[str, HecToken], max_bytes: int) -> None:
        self.tokens = dict(tokens)
        self.events: list[dict[str, Any]] = []
        self.acknowledges = True
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._next_ack: dict[str, int] = {}
        self._pending: set[tuple[str, int]] = set()

    def wait_for(self, done: Callable[[list[dict[str, Any]]], bool], timeout: float) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: done(self.events), timeout):
                raise AssertionError(f"not indexed in {timeout} s; {len(self.events)} events")

    def authorize(self, header: str | None) -> Reply | HecToken:
        if header is None:
            return reply(2)
        scheme, _, value = header.partition(" ")
        if scheme != "Splunk":
            return reply(3)
        token = self.tokens.get(value)
        if token is None:
            return reply(4)
        return reply(1) if token.is_disabled else token

    def take(self, token: HecToken, channel: str | None, body: bytes) -> Reply:
        if token.has_ack:
            if channel is None:
                return reply(10)
            if not _is_guid(channel):
                return reply(11)
        if len(body) > self._max_bytes:
            return reply(6, **{"invalid-event-number": 0})
        try:
            parsed = parse_envelopes(body.decode())
        except UnicodeDecodeError:
            return reply(6, **{"invalid-event-number": 0})
        events, code, number = parsed
        for position, event in enumerate(events):
            if token.indexes and event.get("index", token.indexes[0]) not in token.indexes:
                # Measured: the number is one too high.
                events, code, number = events[:position], 7, position + 1
                break
        with self._changed:
            self.events += events
            self._changed.notify_all()
            more: dict[str, Any] = {} if number is None else {"invalid-event-number": number}
            if token.has_ack and events and channel:
                more["ackId"] = self._next_ack.get(channel, 0)
                self._next_ack[channel] = more["ackId"] + 1
                self._pending.add((channel, more["ackId"]))
        return reply(code, **more)

    def acks(self, token: HecToken, channel: str | None, asked: object) -> Reply:
        """Each acknowledgement is reported once."""
        if not token.has_ack:
            return reply(14)
        if channel is None:
            return reply(10)
        ids = asked.get("acks") if isinstance(asked, dict) else None
        if not isinstance(ids, list):
            return reply(6)
        with self._changed:
            done = {each for each in ids if self.acknowledges and (channel, each) in self._pending}
            self._pending -= {(channel, each) for each in done}
        return 200, {"acks": {str(each): each in done for each in ids}}


def _is_guid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
