"""Keeps PySpark from deciding what a signal does, and what is said of it."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOTHING: Final = logging.CRITICAL + 1


@contextmanager
def keep_interrupt_handler() -> Iterator[None]:
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
def silence_gateway_logs() -> Iterator[None]:
    """Leave out what Py4J logs: a stack, of what it raises besides."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    level = own.level
    # A filter of the root sees what is told to the root itself, not what comes up from below.
    root.addFilter(_is_of_another)
    own.setLevel(_NOTHING)
    try:
        yield
    finally:
        root.removeFilter(_is_of_another)
        own.setLevel(level)


def _is_of_another(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
