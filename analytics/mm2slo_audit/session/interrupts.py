"""Keeps PySpark from deciding what a signal does, and what is said of it."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def own_interrupt() -> Iterator[None]:
    """Start a session without PySpark's handler of Ctrl-C, which it sets for good."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only there it does
        return
    former = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if former is None else former)


@contextmanager
def silent_gateway() -> Iterator[None]:
    """Leave out what Py4J tells the root logger: a stack, of what it raises besides."""
    root = logging.getLogger()
    root.addFilter(_is_of_another)
    try:
        yield
    finally:
        root.removeFilter(_is_of_another)


def _is_of_another(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
