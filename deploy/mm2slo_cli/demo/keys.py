"""Single key presses of a terminal, without waiting for Enter."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType


class Keys:
    """Reads keys while the context lasts; where standard input is no terminal there are none.

    Ctrl-C stays a signal.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._former: Any = None  # what termios gave, for termios alone

    def __enter__(self) -> Self:
        if sys.stdin is None or not sys.stdin.isatty():
            return self
        # Absent on Windows, where there is no terminal in this sense either.
        import termios
        import tty

        self._file = sys.stdin.fileno()
        self._former = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._former is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._former)

    @property
    def there(self) -> bool:
        """Whether there is a terminal to press keys at."""
        return self._file is not None

    def wait(self, seconds: float) -> str:
        """The next key within *seconds*; empty when none was pressed."""
        if self._file is None:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([self._file], [], [], seconds)
        if not ready:
            return ""
        pressed = os.read(self._file, 1).decode(errors="replace")
        if not pressed:  # the terminal is gone: do not spin on its end
            self._file = None
        return pressed.lower()
