"""A session decides neither what a signal does nor what is said of it."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING

from mm2slo_audit.session.interrupt_handler import keep_interrupt_handler, silence_gateway_logs

if TYPE_CHECKING:
    import pytest


def test_a_handler_that_a_start_sets_does_not_last() -> None:
    before = signal.getsignal(signal.SIGINT)
    with keep_interrupt_handler():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_the_gateway_tells_the_root_logger_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    def say(path: str, text: str) -> None:
        record = logging.LogRecord("root", logging.ERROR, path, 1, text, (), None)
        logging.getLogger().handle(record)

    with silence_gateway_logs():
        say("/python/site-packages/py4j/java_gateway.py", "KeyboardInterrupt while sending")
        say("/python/site-packages/other/gateway.py", "another")
    say("/python/site-packages/py4j/java_gateway.py", "after it")
    assert caplog.messages == ["another", "after it"]


def test_what_the_gateway_tells_its_own_loggers_is_silent_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway, another = logging.getLogger("py4j.clientserver"), logging.getLogger("pyspark")
    with silence_gateway_logs():
        gateway.error("Exception while shutting down a socket")
        another.error("another")
    gateway.error("after it")
    assert caplog.messages == ["another", "after it"]
