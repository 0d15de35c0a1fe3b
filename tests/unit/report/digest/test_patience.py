"""What is tried again, and what never: each failure that urllib tells of."""

from __future__ import annotations

import http.client
import socket
import ssl
from urllib.error import URLError

import pytest

from mm2slo_report.digest.posting.patience import Reply, patiently
from mm2slo_report.digest.posting.port import Refused, Unsure


def slept_until(failure: Exception, then: type[Exception]) -> list[float]:
    """How long was waited between attempts that fail with *failure* each time."""
    slept: list[float] = []

    def attempt() -> Reply:
        raise failure

    with pytest.raises(then):
        patiently(attempt, slept.append)
    return slept


@pytest.mark.parametrize(
    "reason",
    [
        ConnectionRefusedError(111, "Connection refused"),
        socket.gaierror(-2, "Name or service not known"),
        OSError(113, "No route to host"),
    ],
)
def test_a_server_that_is_not_reached_is_tried_four_times(reason: OSError) -> None:
    assert slept_until(URLError(reason), Refused) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "reason",
    [ssl.SSLCertVerificationError(1, "certificate verify failed"), TimeoutError("timed out")],
)
def test_what_will_not_pass_is_not_tried_again(reason: OSError) -> None:
    assert slept_until(URLError(reason), Refused) == []


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
def test_what_may_have_arrived_is_never_tried_again(failure: Exception) -> None:
    assert slept_until(failure, Unsure) == []


def test_a_failure_that_passes_is_forgotten() -> None:
    replies = [Reply(503, "down"), Reply(429, "rate_limited", 3.0), Reply(200, ts="1.0")]
    slept: list[float] = []
    assert patiently(lambda: replies.pop(0), slept.append) == "1.0"
    assert slept == [1.0, 3.0]
