"""The process that reads the configuration for the exporter.

Command line, pydantic and the models take 20 MB and half of the time of a start, and a service
needs none of them while it runs. The first reading is a fork of the command that starts, so that
help, errors and exit codes are those of the command line; the service imports its own modules
meanwhile. Later readings are new interpreters: a fork of a process with threads may deadlock.
Settings travel through pipes, because they contain secrets.
"""

import gc
import logging
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.exporter_settings import RootSettings
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from mm2slo_cli.config_options import ConfigSource

_READ_AGAIN: Final = "from mm2slo_cli.settings_process import main; main()"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read. *source* is a pickled `ConfigSource`, *findings* have a level of logging."""

    source: bytes
    flows: tuple[str, ...]
    version: str
    settings: RootSettings
    findings: tuple[tuple[int, str], ...]


class FirstReading:
    """A fork that goes on as the command line and ends in `send`."""

    _pipe: int | None = None
    """In the fork: where the service waits."""

    def __init__(self) -> None:
        self._receiving, sending = os.pipe()
        self._pid = os.fork()
        self.is_fork = self._pid == 0
        if self.is_fork:
            gc.disable()  # it ends soon
            os.close(self._receiving)
            FirstReading._pipe = sending
        else:
            os.close(sending)

    def result(self) -> Reading:
        """Wait for the result. Without one, exits with the fork's code: it has printed why."""
        with os.fdopen(self._receiving, "rb") as pipe:
            content = pipe.read()
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        if code or not content:
            sys.exit(code if code >= 0 else 128 - code)  # as in a shell
        return _unpickled(content)

    @classmethod
    def send(cls, reading: Reading) -> None:
        """Send *reading* to the service and exit; returns if none waits: this is not a fork."""
        if cls._pipe is not None:
            with os.fdopen(cls._pipe, "wb") as pipe:
                pickle.dump(reading, pipe)
            os._exit(0)  # freeing all modules takes a tenth of a second


def run(source: "ConfigSource", flows: list[str]) -> None:
    """The command `mm2slo exporter`: read the configuration for the service."""
    reading = _read(source, flows)
    FirstReading.send(reading)
    from mm2slo_cli.exporter import serve

    serve(reading)


def read_again(reading: Reading) -> Reading:
    """Read all files again. Raises UserError."""
    command = [sys.executable, "-c", _READ_AGAIN]
    request = pickle.dumps((reading.source, reading.flows))
    done = subprocess.run(command, input=request, stdout=subprocess.PIPE, check=False)
    if done.returncode or not done.stdout:
        raise UserError(
            f"the process that reads the configuration ended with {done.returncode}; "
            "expected 0; its error is in the log above"
        )
    return _unpickled(done.stdout)


def main() -> None:
    """Read the source on standard input; write the result, or a UserError, to standard output."""
    source, flows = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by `read_again`
    result: Reading | UserError
    try:
        result = _read(pickle.loads(source), flows)  # noqa: S301
    except UserError as error:
        result = UserError(str(error))  # subclasses have arguments of their own
    pickle.dump(result, sys.stdout.buffer)


def _unpickled(content: bytes) -> Reading:
    result: Reading | UserError = pickle.loads(content)  # noqa: S301 - of a process of this module
    if isinstance(result, UserError):
        raise result
    return result


def _read(source: "ConfigSource", flows: list[str]) -> Reading:
    from importlib.metadata import version  # 4 MB, with the parser of e-mails

    from mm2slo_cli.config_files import load_source

    config, findings = load_source(source)
    levels = logging.getLevelNamesMapping()
    found = ((levels[each.severity.name], str(each)) for each in findings)
    return Reading(
        pickle.dumps(source), tuple(flows), version("mm2slo"), config.as_settings(), tuple(found)
    )
