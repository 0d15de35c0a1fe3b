"""Events that Splunk rejects, kept on disk within a limit until they are sent again."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from mm2slo_logship.checkpoints import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SEGMENTS: Final = 8
_ALL: Final = (".jsonl", ".taken")
_LONGEST_ENVELOPE: Final = 1_000_000


class DeadLetter(NamedTuple):
    at: str
    reason: str
    envelope: bytes


class DeadLetters:
    """Segments in *folder*, the oldest of which is deleted when they exceed *max_bytes*.

    Several processes may add and take at the same time.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def add(self, envelope: bytes, reason: str) -> int:
        """Write a dead letter to disk; returns how many older ones were deleted. Raises OSError."""
        line = orjson.dumps(
            {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "reason": reason,
                "envelope": envelope[:_LONGEST_ENVELOPE].decode("utf-8", "replace"),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        with self._locked():
            dropped = self._make_room(len(line))
            path = self._current(len(line))
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with open(os.open(path, flags, 0o600), "ab") as segment:  # noqa: PTH123 - the mode
                segment.truncate(_whole_lines(path))
                segment.write(line)
                segment.flush()
                os.fsync(segment.fileno())
            sync_folder(self._folder)
        return dropped

    def __iter__(self) -> Iterator[DeadLetter]:
        for path in self._segments(_ALL):
            yield from _letters(path)

    def take(self) -> Iterator[list[DeadLetter]]:
        """The letters of each segment, which is deleted when the next one is asked for."""
        with self._locked():
            taken = [path.rename(path.with_suffix(".taken")) for path in self._segments()]
        for path in sorted({*taken, *self._folder.glob("*.taken")}):  # also of a killed replay
            yield list(_letters(path))
            path.unlink(missing_ok=True)

    def _segments(self, suffixes: tuple[str, ...] = (".jsonl",)) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.suffix in suffixes)

    def _current(self, size: int) -> Path:
        segments = self._segments(_ALL)
        last = segments[-1] if segments else None
        fits = last is not None and last.stat().st_size + size <= self._max_bytes / _SEGMENTS
        if last is not None and fits and last.suffix == ".jsonl":
            return last
        number = int(last.stem) + 1 if last else 1
        return self._folder / f"{number:012d}.jsonl"

    def _make_room(self, size: int) -> int:
        segments = self._segments(_ALL)
        total = sum(path.stat().st_size for path in segments)
        dropped = 0
        for path in segments:
            if total + size <= self._max_bytes:
                break
            total -= path.stat().st_size
            dropped += sum(1 for _ in _letters(path))
            path.unlink()
        return dropped

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _letters(path: Path) -> Iterator[DeadLetter]:
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                found = orjson.loads(line)
                yield DeadLetter(found["at"], found["reason"], found["envelope"].encode())


def _whole_lines(path: Path) -> int:
    """The size without a line that was cut by a full disk or a kill."""
    return path.read_bytes().rfind(b"\n") + 1
