"""Turns the first SIGINT, SIGTERM or SIGHUP into an exception in the main thread."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal requested the end of the command.

    A KeyboardInterrupt for every signal: only for Ctrl-C does Py4J drop a connection that awaits a
    response; after any other exception the cleanup would read that response as its own.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """128 + the signal number, as in a shell."""
        return 128 + self.number


class SignalInterrupts:
    """Raises `Interrupted` at the first signal; later signals are ignored until `enable`."""

    def __init__(self) -> None:
        self._enabled = True

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def _on_signal(self, number: int, _frame: object) -> None:
        if self._enabled:
            # A second Ctrl-C must not interrupt the cleanup.
            self._enabled = False
            raise Interrupted(number)


def wait_for_signal() -> NoReturn:
    """Wait until a signal interrupts; one that another thread gets would not end `signal.pause`."""
    while True:
        time.sleep(1.0)


@contextmanager
def interrupt_on_signals() -> Iterator[SignalInterrupts]:
    """Handle SIGINT, SIGTERM and SIGHUP; the previous handlers are restored afterwards."""
    interrupts = SignalInterrupts()
    previous = {number: signal.signal(number, interrupts._on_signal) for number in _SIGNALS}
    try:
        yield interrupts
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
