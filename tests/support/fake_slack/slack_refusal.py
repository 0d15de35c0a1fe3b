"""Slack's error response, with the reason for tests."""


class RefusalError(Exception):
    """Slack's status and body; Slack does not send *reason*."""

    def __init__(self, status: int, body: str, reason: str) -> None:
        super().__init__(f"{status} {body}: {reason}")
        self.status = status
        self.body = body
        self.reason = reason


def require(holds: bool, reason: str, body: str = "invalid_payload") -> None:
    """Raise RefusalError unless *holds*."""
    if not holds:
        raise RefusalError(400, body, reason)
