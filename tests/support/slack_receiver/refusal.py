"""Why a message is refused: Slack's answer, and for the tests the reason behind it."""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """Slack's status and body; *reason* is ours, Slack tells less."""

    def __init__(self, status: int, body: str, reason: str) -> None:
        super().__init__(f"{status} {body}: {reason}")
        self.status = status
        self.body = body
        self.reason = reason


def demand(holds: bool, reason: str, body: str = "invalid_payload") -> None:
    """Raise Refusal unless it *holds*."""
    if not holds:
        raise Refusal(400, body, reason)
