"""The part of Slack's Web API that posts and updates messages."""

import json
from typing import Any, Final

from recording_server import Answer, RecordingServer, Request

from fake_slack.message_limits import check_message
from fake_slack.slack_refusal import RefusalError

TOKEN: Final = "xoxb-1-of-the-tests"
_API_FIELDS: Final = frozenset({"channel", "ts"})


class FakeSlackApi(RecordingServer):
    """Accepts messages at `base_url` from the bot with `TOKEN`.

    *channels* are those of the bot; it is not a member of *others*.
    """

    def __init__(self, *channels: str, others: frozenset[str] = frozenset()) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        """Current messages by `ts`."""
        self.refusals: list[RefusalError] = []
        self.calls: list[str] = []
        self._channels = frozenset(channels)
        self._others = others
        self._failures: list[Answer] = []
        super().__init__(self._answer)

    @property
    def base_url(self) -> str:
        """Base URL for `WebClient`."""
        return self.address + "/api/"

    def fail(
        self, status: int, body: str = "", *, retry_after: str | None = None, times: int = 1
    ) -> None:
        """Refuse the next *times* calls."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        self._failures += [Answer(status, body, headers)] * times

    def _answer(self, request: Request) -> Answer:
        self.calls.append(request.path.removeprefix("/api/"))
        if self._failures:
            return self._failures.pop(0)
        try:
            return _json({"ok": True, **self._take(request)})
        except RefusalError as refusal:
            self.refusals.append(refusal)
            # Slack returns 200 for all errors but rate limiting.
            return _json({"ok": False, "error": refusal.body})

    def _take(self, request: Request) -> dict[str, Any]:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise RefusalError(200, "invalid_auth", "wrong token")
        payload = json.loads(request.body)
        channel = payload.get("channel")
        if channel in self._others:
            raise RefusalError(200, "not_in_channel", repr(channel))
        if channel not in self._channels:
            raise RefusalError(200, "channel_not_found", repr(channel))
        check_message({key: value for key, value in payload.items() if key not in _API_FIELDS})
        if not payload.get("text"):
            raise RefusalError(200, "no_text", "blocks without a text to fall back to")
        ts = f"1784530800.{len(self.messages):06}"
        if request.path == "/api/chat.update":
            ts = payload["ts"]
            if ts not in self.messages:
                raise RefusalError(200, "message_not_found", ts)
        elif request.path != "/api/chat.postMessage":
            raise RefusalError(200, "unknown_method", request.path)
        self.messages[ts] = payload
        return {"channel": channel, "ts": ts}


def _json(content: dict[str, Any]) -> Answer:
    return Answer(200, json.dumps(content), content_type="application/json; charset=utf-8")
