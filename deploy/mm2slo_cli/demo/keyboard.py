"""Single key presses on a terminal."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType


class Keyboard:
    """Reads single keys without Enter; none if standard input is not a terminal.

    Ctrl-C is still a signal.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._saved: Any = None  # opaque state of termios

    def __enter__(self) -> Self:
        if sys.stdin is None or not sys.stdin.isatty():
            return self
        # Not available on Windows.
        import termios
        import tty

        self._file = sys.stdin.fileno()
        self._saved = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._saved is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._saved)

    @property
    def is_available(self) -> bool:
        """Whether standard input is a terminal."""
        return self._file is not None

    def wait(self, seconds: float) -> str:
        """Return the next key within *seconds*, or ""."""
        if self._file is None:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([self._file], [], [], seconds)
        if not ready:
            return ""
        pressed = os.read(self._file, 1).decode(errors="replace")
        if not pressed:  # the terminal was closed
            self._file = None
        return pressed.lower()
