"""A strict stand-in for Splunk's HTTP Event Collector; answer_facts has its sources."""

from __future__ import annotations

import gzip
import json
import re
import socket
import ssl
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

_PATH: Final = re.compile(r"/services/collector(?:/(event|ack|health))?(?:/1\.0)?")
_NO_PATH: Final = (404, {"text": "The requested URL was not found on this server.", "code": 404})


class FakeHec:
    """Serves until `stop`; `start` again uses the same port.

    `faults` meet the next requests, in order; `fault` meets every request.
    """

    def __init__(
        self,
        tokens: Mapping[str, HecToken] | None = None,
        *,
        max_bytes: int = 5_242_881,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.index = HecIndex(tokens or {"token-1": HecToken()}, max_bytes)
        self.faults: deque[Fault] = deque()
        self.fault: Fault | None = None
        self.requests: list[Mapping[str, str]] = []
        self._tls = tls
        self._port = 0
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def events(self) -> list[Any]:
        """The indexed `event` objects, in order."""
        return [each["event"] for each in self.index.events]

    def start(self) -> FakeHec:
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.fake = self
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.cut_connections()
            self._server = None

    def __enter__(self) -> FakeHec:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def next_fault(self) -> Fault | None:
        try:
            return self.faults.popleft()
        except IndexError:
            return self.fault


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    fake: FakeHec

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        """End kept connections, too."""
        for connection in tuple(self._connections):
            with suppress(OSError):  # the client has closed it
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that was killed is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        pass

    def do_GET(self) -> None:
        match = _PATH.fullmatch(self.path)
        if match and match[1] == "health":
            self._answer(*reply(17))
        elif match:
            self._answer(405, {"text": "Method Not Allowed", "code": 404})
        else:
            self._answer(*_NO_PATH)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fake = self.server.fake
        fake.requests.append(dict(self.headers))
        match = _PATH.fullmatch(self.path.partition("?")[0])
        if match is None or match[1] == "health":
            self._answer(*_NO_PATH)
            return
        fault = None if match[1] == "ack" else fake.next_fault()
        if fault is None:
            answer = self._take(match[1], body)
            if answer is not None:
                self._answer(*answer)
            return
        time.sleep(fault.delay)
        if fault.indexes:
            self._take(match[1], body)
        if not fault.status:
            self.close_connection = True
            return
        self._write(fault.status, fault.body, fault.headers, is_cut=fault.is_cut)

    def _take(self, kind: str | None, body: bytes) -> Reply | None:
        """None: an answer in HTML was written."""
        index = self.server.fake.index
        encoding = self.headers.get("Content-Encoding")
        if encoding not in {None, "gzip"}:
            self._write(415, b"<html>Unsupported Media Type</html>", {"Content-Type": "text/html"})
            return None
        token = index.authorize(self.headers.get("Authorization"))
        if not isinstance(token, HecToken):
            return token
        if encoding:
            body = gzip.decompress(body)
        channel = self.headers.get("X-Splunk-Request-Channel")
        if kind != "ack":
            return index.take(token, channel, body)
        try:
            return index.acks(token, channel, json.loads(body))
        except ValueError:
            return reply(6)

    def _answer(self, status: int, document: Mapping[str, Any]) -> None:
        self._write(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def _write(
        self, status: int, body: bytes, headers: Mapping[str, str], *, is_cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.wfile.flush()
        self.close_connection = self.close_connection or is_cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`indexes`: the events are indexed, although the answer does not say so."""

    status: int = 0  # 0: the connection is closed without an answer
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    indexes: bool = False
    is_cut: bool = False  # half of the answer, then the connection is closed
    delay: float = 0.0

    @classmethod
    def code(cls, code: int, **headers: str) -> Fault:
        """An answer of HEC; header names with underscores for hyphens."""
        fact = FACTS[code]
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        body = f'{{"text":"{fact.text}","code":{code}}}'.encode()
        return cls(status=fact.status, body=body, headers=named, indexes=fact.status == 200)

    @classmethod
    def html(cls, status: int, **headers: str) -> Fault:
        """An answer of a proxy or of Splunk Web."""
        return cls(status=status, body=b"<html>error</html>", headers=headers)


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

    def forget(self) -> None:
        """What was not written to disk is lost, and ids start again, as when Splunk is killed."""
        self.events.clear()
        self._next_ack.clear()
        self._pending.clear()

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


class AnswerFact(NamedTuple):
    code: int
    status: int
    text: str
    source: str


FACTS: Final = {
    fact.code: fact
    for fact in (
        AnswerFact(0, 200, "Success", "docs, measured"),
        AnswerFact(1, 403, "Token disabled", "docs"),
        AnswerFact(2, 401, "Token is required", "docs, measured"),
        AnswerFact(3, 401, "Invalid authorization", "docs, measured"),
        AnswerFact(4, 403, "Invalid token", "docs, measured"),
        AnswerFact(5, 400, "No data", "docs, measured"),
        AnswerFact(6, 400, "Invalid data format", "docs, measured"),
        AnswerFact(7, 400, "Incorrect index", "docs, measured"),
        AnswerFact(8, 500, "Internal server error", "docs"),
        AnswerFact(9, 503, "Server is busy", "docs"),
        AnswerFact(10, 400, "Data channel is missing", "docs"),
        AnswerFact(11, 400, "Invalid data channel", "docs"),
        AnswerFact(12, 400, "Event field is required", "docs, measured"),
        AnswerFact(13, 400, "Event field cannot be blank", "docs, measured"),
        AnswerFact(14, 400, "ACK is disabled", "docs"),
        AnswerFact(15, 400, "Error in handling indexed fields", "docs, measured"),
        AnswerFact(16, 400, "Query string authorization is not enabled", "docs"),
        AnswerFact(17, 200, "HEC is healthy", "docs, measured"),
        AnswerFact(18, 503, "HEC is unhealthy, queues are full", "docs"),
        AnswerFact(19, 503, "HEC is unhealthy, ack service unavailable", "docs"),
        AnswerFact(20, 503, "HEC is unhealthy, queues are full, ack service unavailable", "docs"),
        AnswerFact(21, 400, "Invalid token", "docs"),
        AnswerFact(22, 400, "Token disabled", "docs"),
        AnswerFact(23, 503, "Server is shutting down", "docs"),
        AnswerFact(24, 200, "Queue is approaching capacity", "docs"),
        AnswerFact(25, 200, "Ack channel is approaching capacity", "docs"),
        AnswerFact(26, 429, "Queue is at capacity", "docs"),
        AnswerFact(27, 429, "Ack channel is at capacity", "docs"),
        AnswerFact(28, 400, "Data channel is missing", "measured on Cloud 10.5"),
    )
}
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
