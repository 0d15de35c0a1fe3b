"""What a long-running command needs from its process: signals, readiness and a log file.

The first SIGINT, SIGTERM or SIGHUP becomes an exception in the main thread. The log file is written
beside standard output, for log shippers.
"""

import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final, NoReturn

from mm2slo_core.log_redaction import JsonFormatter
from mm2slo_core.user_errors import UserError

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
    """Raises `Interrupted` at the first signal; later ones are ignored until it is `enabled`."""

    def __init__(self) -> None:
        self.enabled = True

    def _on_signal(self, number: int, _frame: object) -> None:
        if self.enabled:
            # A second Ctrl-C must not interrupt the cleanup.
            self.enabled = False
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


def notify_ready() -> None:
    """Report to systemd that the start has succeeded, for units of `Type=notify` (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    # Without the message, systemd reports a timeout of the start.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notification:
        notification.sendto(b"READY=1", address)


_VARIABLE: Final = "MM2SLO_LOG_FOLDER"
_MAX_BYTES: Final = 10_000_000
_OLD_FILES: Final = 5


def log_to_file(service: str) -> None:
    """Also write JSON lines to `<service>.log` in the folder MM2SLO_LOG_FOLDER, if that is set.

    Raises UserError.
    """
    folder = os.environ.get(_VARIABLE)
    if not folder:
        return
    path = Path(folder) / f"{service}.log"
    try:
        handler = RotatingFileHandler(
            path, maxBytes=_MAX_BYTES, backupCount=_OLD_FILES, encoding="utf-8"
        )
    except OSError as error:
        raise UserError(
            f"cannot write the log file {str(path)!r}: {error.strerror}; expected {_VARIABLE} to "
            "be a folder that this user may write to"
        ) from None
    handler.setFormatter(JsonFormatter(service))
    logging.getLogger().addHandler(handler)
