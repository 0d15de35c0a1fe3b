"""What all unit tests share."""

import logging
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_log_records(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Capture nothing from threads that earlier tests left.

    One that an unreachable cluster blocks ends with its request, later than its exporter.
    """
    left = set(threading.enumerate()) - {threading.current_thread()}

    def is_own(_record: logging.LogRecord) -> bool:
        return threading.current_thread() not in left

    caplog.handler.addFilter(is_own)
    yield
    caplog.handler.removeFilter(is_own)
