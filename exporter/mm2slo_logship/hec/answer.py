"""An answer of the HTTP Event Collector, or why it did not come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import orjson

from mm2slo_logship.hec.answer_codes import Action, action_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_RETRY_AFTER: Final = 300.0
_SHOWN: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`is_ambiguous`: the request may have been accepted; a retry may duplicate its events."""

    action: Action
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


def read_answer(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> Answer:
    """Read a response; a body that is not from HEC is quoted, as proxies answer in HTML."""
    found = _object(body)
    code = _whole(found.get("code"))
    text = found.get("text")
    quoted = body[:_SHOWN].decode("ascii", "replace").replace("\n", " ")
    action = action_of(status, code)
    return Answer(
        action=action,
        status=status,
        code=code,
        text=text if isinstance(text, str) else f"not an answer of HEC: {quoted!r}",
        invalid_event=_whole(found.get("invalid-event-number")),
        ack_id=_whole(found.get("ackId")),
        retry_after=_retry_after(headers.get("Retry-After"), now),
        is_ambiguous=action is Action.RETRY and 200 <= status < 300,
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
