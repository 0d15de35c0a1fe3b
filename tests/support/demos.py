"""Runs `mm2slo demo` in a terminal of 80 columns."""

import contextlib
import os
import pty
import re
import select
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "mm2slo"
PAGE = re.compile(r"Page +(http://127\.0\.0\.1:\d+/)")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment(folder: Path) -> dict[str, str]:
    """Environment of a terminal, with temporary files in *folder*."""
    return {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm", "TMPDIR": str(folder)}


def descendants(pid: int) -> dict[int, str]:
    """Return all descendants of *pid* with their start times."""
    found: dict[int, str] = {}
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                stats[int(entry.name)] = (int(fields[1]), fields[19])
    wanted = {pid}
    while wanted:
        wanted = {child for child, (parent, _) in stats.items() if parent in wanted}
        found |= {child: stats[child][1] for child in wanted}
    return found


def all_exited(processes: dict[int, str]) -> bool:
    """Wait up to ten seconds for all *processes* to exit."""
    end = time.monotonic() + 10
    while _running(processes):
        if time.monotonic() > end:
            return False
        select.select([], [], [], 0.05)
    return True


def _running(processes: dict[int, str]) -> list[int]:
    left = []
    for pid, started in processes.items():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2]
            if fields.split()[19] == started and fields.split()[0] != "Z":
                left.append(pid)
    return left


@dataclass
class Terminal:
    """A terminal in which a demo runs."""

    pid: int
    _file: int
    _shown: bytearray = field(default_factory=bytearray)

    @property
    def seen(self) -> str:
        """Output so far, without escape sequences."""
        return _ESCAPES.sub("", self._shown.decode(errors="replace"))

    @property
    def lines(self) -> list[str]:
        """Final content of each line."""
        return [line.rsplit("\r", 1)[-1] for line in self.seen.split("\r\n")]

    @property
    def page(self) -> str:
        """URL of the status page, from the output; a frame may arrive in pieces."""
        self.read(lambda seen: PAGE.search(seen) is not None)
        found = PAGE.search(self.seen)
        assert found is not None, self.seen[-3000:]
        return found[1]

    def read(self, enough: Callable[[str], bool], timeout: float = 600.0) -> None:
        """Read until the output is *enough*, or the program exits."""
        end = time.monotonic() + timeout
        while not enough(self.seen):
            ready, _, _ = select.select([self._file], [], [], max(end - time.monotonic(), 0))
            assert ready, f"timed out after {timeout:.0f} s:\n{self.seen[-3000:]}"
            try:
                piece = os.read(self._file, 65536)
            except OSError:  # Linux: the program has closed it
                return
            if not piece:
                return
            self._shown += piece

    def press(self, key: str) -> None:
        """Press a key; Ctrl-C is `\x03`."""
        os.write(self._file, key.encode())

    def end(self) -> int:
        """Read until the program exits; returns its exit code."""
        self.read(lambda _seen: False)
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


@contextlib.contextmanager
def run_demo(folder: Path, *options: str) -> Iterator[Terminal]:
    """Run `mm2slo demo` with *options*; temporary files are in *folder*."""
    pid, file = pty.fork()
    if pid == 0:  # pragma: no cover - the child execs the demo
        os.execve(PROGRAM, [str(PROGRAM), "demo", *options], environment(folder))  # noqa: S606
    try:
        yield Terminal(pid, file)
    finally:
        # Closing the terminal sends SIGHUP.
        os.close(file)
