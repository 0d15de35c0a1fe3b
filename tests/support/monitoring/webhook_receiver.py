"""A receiver of Alertmanager's generic webhook, format version 4."""

import json
from typing import Any

from recording_server import Answer, RecordingServer, Request

_KEYS = {
    *("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels"),
    *("commonLabels", "commonAnnotations", "externalURL", "alerts"),
}


class WebhookReceiver(RecordingServer):
    """Accepts messages at `url`; with *token*, only those that carry it."""

    def __init__(self, token: str | None = None) -> None:
        self.messages: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self._token = token
        super().__init__(self._answer)

    @property
    def url(self) -> str:
        """Address to post to."""
        return f"{self.address}/alerts"

    def _answer(self, request: Request) -> Answer:
        if self._token and request.headers.get("authorization") != f"Bearer {self._token}":
            self.refused.append(request.headers.get("authorization", "no authorization"))
            return Answer(401, "unauthorized")
        payload = json.loads(request.body)
        if set(payload) != _KEYS or payload["version"] != "4":
            self.refused.append(f"keys {sorted(payload)}")
            return Answer(400, "bad request")
        self.messages.append(payload)
        return Answer()
