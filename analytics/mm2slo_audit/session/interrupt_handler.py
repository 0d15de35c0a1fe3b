"""Restores the handler of Ctrl-C that PySpark replaces, and silences Py4J's log."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_ABOVE_CRITICAL: Final = logging.CRITICAL + 1


@contextmanager
def keep_interrupt_handler() -> Iterator[None]:
    """Restore the SIGINT handler after starting a session: PySpark replaces it permanently."""
    if threading.current_thread() is not threading.main_thread():
        yield  # PySpark sets it only in the main thread
        return
    former = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if former is None else former)


@contextmanager
def silence_gateway_logs() -> Iterator[None]:
    """Drop Py4J's log messages: they are stack traces of exceptions that it also raises."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    level = own.level
    # A filter of the root logger sees only records logged to it directly, not propagated ones.
    root.addFilter(_is_not_py4j)
    own.setLevel(_ABOVE_CRITICAL)
    try:
        yield
    finally:
        root.removeFilter(_is_not_py4j)
        own.setLevel(level)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
