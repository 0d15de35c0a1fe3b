"""Slack's Web API, as far as a bot posts and changes messages with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Self

from recording_server import Answer, RecordingServer

from slack_receiver.refusal import Refusal
from slack_receiver.rules import check

if TYPE_CHECKING:
    from recording_server import Request

TOKEN: Final = "xoxb-1-of-the-tests"
_OF_THE_API: Final = frozenset({"channel", "ts"})


class SlackApi:
    """Takes messages at `base_url` while it is entered, for the bot of `TOKEN`.

    *channels* are the ids of those that the bot is in; *others* exist, too.
    """

    def __init__(self, *channels: str, others: frozenset[str] = frozenset()) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        """By `ts`, as they are now."""
        self.refusals: list[Refusal] = []
        self.calls: list[str] = []
        self._channels = frozenset(channels)
        self._others = others
        self._failures: list[Answer] = []
        self._server = RecordingServer(self._answer)

    @property
    def base_url(self) -> str:
        """For `WebClient`."""
        return self._server.address + "/api/"

    def fail(
        self, status: int, body: str = "", *, retry_after: str | None = None, times: int = 1
    ) -> None:
        """Answer the next *times* calls so, and take none of them."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        self._failures += [Answer(status, body, headers)] * times

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()

    def _answer(self, request: Request) -> Answer:
        self.calls.append(request.path.removeprefix("/api/"))
        if self._failures:
            return self._failures.pop(0)
        try:
            return _json({"ok": True, **self._take(request)})
        except Refusal as refusal:
            self.refusals.append(refusal)
            # Slack says all its refusals but that of the rate with 200.
            return _json({"ok": False, "error": refusal.body})

    def _take(self, request: Request) -> dict[str, Any]:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refusal(200, "invalid_auth", "another token")
        payload = json.loads(request.body)
        channel = payload.get("channel")
        if channel in self._others:
            raise Refusal(200, "not_in_channel", repr(channel))
        if channel not in self._channels:
            raise Refusal(200, "channel_not_found", repr(channel))
        check({key: value for key, value in payload.items() if key not in _OF_THE_API})
        if not payload.get("text"):
            raise Refusal(200, "no_text", "blocks without a text to fall back to")
        ts = f"1784530800.{len(self.messages):06}"
        if request.path == "/api/chat.update":
            ts = payload["ts"]
            if ts not in self.messages:
                raise Refusal(200, "message_not_found", ts)
        elif request.path != "/api/chat.postMessage":
            raise Refusal(200, "unknown_method", request.path)
        self.messages[ts] = payload
        return {"channel": channel, "ts": ts}


def _json(content: dict[str, Any]) -> Answer:
    return Answer(200, json.dumps(content), content_type="application/json; charset=utf-8")
