"""One incoming webhook of one channel, with Slack's rate limit and error responses."""

import json
import math
import time
from dataclasses import dataclass
from typing import Any, Final

from recording_server import Answer, RecordingServer, Request

from fake_slack.message_limits import check_message
from fake_slack.slack_refusal import RefusalError

_PATH: Final = "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
_RATE: Final = 1.0
"""Messages per second that Slack accepts per channel, apart from short bursts."""


@dataclass(frozen=True, slots=True)
class Message:
    """An accepted message; `at` is monotonic."""

    payload: dict[str, Any]
    at: float

    @property
    def attachment(self) -> dict[str, Any]:
        """The only attachment."""
        [attachment] = self.payload["attachments"]
        assert isinstance(attachment, dict)
        return attachment

    @property
    def title(self) -> str:
        """The attachment's title, escaped as it was sent."""
        return str(self.attachment["title"])


class FakeSlackWebhook(RecordingServer):
    """Accepts messages at `url`: *burst* at once, then *rate* per second."""

    def __init__(
        self, *, burst: int = 5, rate: float = _RATE, channels: frozenset[str] = frozenset()
    ) -> None:
        self.messages: list[Message] = []
        self.refusals: list[RefusalError] = []
        self._burst = burst
        self._rate = rate
        self._channels = channels
        self._tokens = float(burst)
        self._filled_at = time.monotonic()
        self._failures: list[Answer] = []
        super().__init__(self._answer)

    @property
    def url(self) -> str:
        """The webhook's URL."""
        return self.address + _PATH

    def fail(self, *, status: int = 500, body: str = "rollup_error", times: int = 1) -> None:
        """Refuse the next *times* messages."""
        self._failures += [Answer(status, body)] * times

    def titles(self) -> list[str]:
        """Titles of the accepted messages."""
        return [message.title for message in self.messages]

    def _answer(self, request: Request) -> Answer:
        try:
            self._take(request)
        except RefusalError as refusal:
            self.refusals.append(refusal)
            headers = {"Retry-After": refusal.reason} if refusal.status == 429 else {}
            return Answer(refusal.status, refusal.body, headers)
        return Answer()

    def _take(self, request: Request) -> None:
        if request.method != "POST":
            raise RefusalError(405, "method_not_allowed", request.method)
        if not request.path.startswith("/services/"):
            raise RefusalError(404, "no_service", request.path)
        if request.path != _PATH:
            raise RefusalError(403, "invalid_token", request.path)
        self._limit(request.at)
        if self._failures:
            failure = self._failures.pop(0)
            raise RefusalError(failure.status, failure.body, "configured failure")
        payload = _decoded(request)
        channel = payload.get("channel") if isinstance(payload, dict) else None
        if channel is not None and channel not in self._channels:
            raise RefusalError(404, "channel_not_found", repr(channel))
        check_message(payload)
        self.messages.append(Message(payload, request.at))

    def _limit(self, now: float) -> None:
        """Apply a token bucket."""
        filled = self._tokens + (now - self._filled_at) * self._rate
        self._tokens, self._filled_at = min(filled, float(self._burst)), now
        if self._tokens < 1.0:
            raise RefusalError(
                429, "rate_limited", str(math.ceil((1.0 - self._tokens) / self._rate))
            )
        self._tokens -= 1.0


def _decoded(request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise RefusalError(400, "invalid_payload", f"content type {kind!r}")
    try:
        return json.loads(request.body)
    except ValueError as error:
        raise RefusalError(400, "invalid_payload", str(error)) from error
