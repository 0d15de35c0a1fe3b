"""Ctrl-C and its kin: the first one ends what the main thread does, later ones change nothing."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Told(KeyboardInterrupt):
    """A signal asked for the end.

    Whichever it was: Py4J gives up a connection that waits for an answer for a Ctrl-C alone, and
    what is cleaned up after any other exception would read that answer as its own.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"told to end by {signal.Signals(number).name}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """128 + the signal, as a shell reports it."""
        return 128 + self.number


class Ending:
    """Raises `Told` in the main thread at the first signal, unless `quietly` was called before."""

    def __init__(self) -> None:
        self._armed = True

    def again(self) -> None:
        """Let the next signal interrupt, as the first one did."""
        self._armed = True

    def quietly(self) -> None:
        """Let no signal interrupt from here on: everything is being ended already."""
        self._armed = False

    def _on_signal(self, number: int, _frame: object) -> None:
        if self._armed:
            # An impatient second Ctrl-C must not tear the cleaning up.
            self._armed = False
            raise Told(number)


@contextmanager
def told_by_signals() -> Iterator[Ending]:
    """Take SIGINT, SIGTERM and SIGHUP; the former handlers are back afterwards."""
    ending = Ending()
    former = {number: signal.signal(number, ending._on_signal) for number in _SIGNALS}
    try:
        yield ending
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
