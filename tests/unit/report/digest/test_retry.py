"""Retries by each error that urllib raises."""

import http.client
import socket
import ssl
from urllib.error import URLError

import pytest

from mm2slo_report.digest.slack_posters import SlackReply, post_with_retries
from mm2slo_report.digest.slo_digest import PostRefusedError, PostUnconfirmedError


def retry_waits(failure: Exception, then: type[Exception]) -> list[float]:
    """The waits between attempts that each fail with *failure*."""
    waits: list[float] = []

    def attempt() -> SlackReply:
        raise failure

    with pytest.raises(then):
        post_with_retries(attempt, waits.append)
    return waits


@pytest.mark.parametrize(
    "reason",
    [
        ConnectionRefusedError(111, "Connection refused"),
        socket.gaierror(-2, "Name or service not known"),
        OSError(113, "No route to host"),
    ],
)
def test_unreachable_server_is_tried_four_times(reason: OSError) -> None:
    assert retry_waits(URLError(reason), PostRefusedError) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "reason",
    [ssl.SSLCertVerificationError(1, "certificate verify failed"), TimeoutError("timed out")],
)
def test_permanent_connection_error_is_not_retried(reason: OSError) -> None:
    assert retry_waits(URLError(reason), PostRefusedError) == []


@pytest.mark.parametrize(
    "failure",
    [
        URLError(ConnectionResetError(104, "reset while it was sent")),
        URLError(BrokenPipeError(32, "broken while it was sent")),
        ConnectionResetError(104, "reset"),
        http.client.RemoteDisconnected("no answer"),
        http.client.IncompleteRead(b"o"),
        TimeoutError("timed out"),
        UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "invalid"),
        LookupError("unknown encoding: x-proxy"),
    ],
)
def test_error_after_sending_is_not_retried(failure: Exception) -> None:
    assert retry_waits(failure, PostUnconfirmedError) == []


def test_success_after_errors_returns_the_message_id() -> None:
    replies = [
        SlackReply(503, "down"),
        SlackReply(429, "rate_limited", 3.0),
        SlackReply(200, ts="1.0"),
    ]
    waits: list[float] = []
    assert post_with_retries(lambda: replies.pop(0), waits.append) == "1.0"
    assert waits == [1.0, 3.0]
