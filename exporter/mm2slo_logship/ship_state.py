"""What survives kills and power loss: checkpoints and dead letters, in a locked folder.

A checkpoint says up to where a file has been accepted. Dead letters are events that Splunk rejects,
kept within a limit until they are sent again.
"""

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, TextIO

import orjson

from mm2slo_core.user_errors import UserError

logger = logging.getLogger(__name__)
_SYNC_INTERVAL: Final = 1.0
_CHECKPOINTS: Final = "checkpoints.json"
_SYNCED_CHECKPOINTS: Final = "checkpoints.synced.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheckpoint:
    """A file, and how much of it Splunk has accepted.

    `file_id` is part of each `event_uid`. Device and inode find the file after a rotation by
    rename; the hash of its first `head_length` bytes shows that it is the same file, also after
    compression or when the inode is used again.
    """

    file_id: str
    path: str
    pattern: str  # of the source that found it
    device: int
    inode: int
    head_length: int
    head_hash: str
    generation: int = 0  # how often the file was truncated
    offset: int = 0
    size: int = 0  # when it was last seen
    is_done: bool = False


class Checkpoints:
    """The checkpoints of all files in *folder*.

    `save` replaces the file by rename after each accepted batch, so that a kill repeats at most
    one batch. It waits for the disk at most once a second: power loss repeats one second.
    Threads may share it.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._synced_at = -_SYNC_INTERVAL
        self._by_id = {each.file_id: each for each in _load_checkpoints(folder)}
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[FileCheckpoint]:
        with self._lock:
            return iter(tuple(self._by_id.values()))

    def put(self, checkpoint: FileCheckpoint) -> None:
        with self._lock:
            self._by_id[checkpoint.file_id] = checkpoint

    def remove(self, file_id: str) -> None:
        with self._lock:
            self._by_id.pop(file_id, None)

    def save(self, *, sync: bool = False) -> None:
        """Write all checkpoints. Raises OSError; the previous ones remain readable then."""
        with self._lock:
            body = orjson.dumps({"files": [asdict(each) for each in self._by_id.values()]})
            now = self._clock()
            if sync or now - self._synced_at >= _SYNC_INTERVAL:
                # After power loss, a file that was renamed without waiting may be empty.
                _replace(self._folder / _SYNCED_CHECKPOINTS, body, sync=True)
                self._synced_at = now
            _replace(self._folder / _CHECKPOINTS, body, sync=False)


def _replace(path: Path, body: bytes, *, sync: bool) -> None:
    temporary = path.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        view = memoryview(body)
        while view:
            view = view[os.write(descriptor, view) :]
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(path)
    if sync:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in *folder* survive power loss. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _load_checkpoints(folder: Path) -> list[FileCheckpoint]:
    found = [
        path for path in (folder / _CHECKPOINTS, folder / _SYNCED_CHECKPOINTS) if path.exists()
    ]
    for path in found:
        try:
            document = orjson.loads(path.read_bytes())
            return [FileCheckpoint(**each) for each in document["files"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    if found:
        raise UserError(
            f"cannot read the checkpoints {str(found[0])!r}; expected the file that mm2slo "
            "logship wrote; restore it, or remove it to ship all files from their start"
        )
    return []


_SEGMENTS: Final = 8
_LONGEST_ENVELOPE: Final = 1_000_000


class DeadLetter(NamedTuple):
    at: str
    reason: str
    envelope: bytes


class DeadLetters:
    """Segments in *folder*, the oldest of which is deleted when they exceed *max_bytes*.

    Raises UserError if the folder cannot be used.

    Several processes may add, and one may replay at the same time.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._segments()
        except OSError as error:
            raise _unusable(folder.parent, error) from None

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
        for path in self._segments():
            yield from filter(None, map(_letter, _lines(path)))

    def replay(self, send: Callable[[bytes], bool]) -> None:
        """Delete each letter whose envelope *send* accepts; those it rejects stay as they are.

        What *send* raises ends the replay. A kill repeats at most one segment. Raises UserError if
        another process replays.
        """
        with (self._folder / "replay.lock").open("a") as lock:
            _lock(lock, "another replay of dead letters is running; wait until it has ended")
            for path in self._segments():
                self._replay(path, send)

    def _replay(self, path: Path, send: Callable[[bytes], bool]) -> None:
        sent: set[bytes] = set()
        try:
            for line in _lines(path):
                letter = _letter(line)
                if letter is not None and send(letter.envelope):
                    sent.add(line)
        finally:
            self._delete(path, sent)

    def _delete(self, path: Path, sent: set[bytes]) -> None:
        """Delete the lines *sent*; others may have been added to the segment since."""
        with self._locked():
            kept = [line for line in _lines(path) if line not in sent]
            if kept:
                _replace(path, b"".join(kept), sync=True)
            else:
                path.unlink(missing_ok=True)

    def _segments(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.suffix == ".jsonl")

    def _current(self, size: int) -> Path:
        segments = self._segments()
        last = segments[-1] if segments else None
        if last is not None and last.stat().st_size + size <= self._max_bytes / _SEGMENTS:
            return last
        number = int(last.stem) + 1 if last else 1
        return self._folder / f"{number:012d}.jsonl"

    def _make_room(self, size: int) -> int:
        segments = self._segments()
        total = sum(path.stat().st_size for path in segments)
        dropped = 0
        for path in segments:
            if total + size <= self._max_bytes:
                break
            total -= path.stat().st_size
            dropped += len(_lines(path))
            path.unlink()
        return dropped

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _lines(path: Path) -> list[bytes]:
    """The whole lines of a segment; none if it was deleted to make room."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [line for line in lines if line.endswith(b"\n")]


def _letter(line: bytes) -> DeadLetter | None:
    """The letter in *line*; None if it is damaged."""
    try:
        found = orjson.loads(line)
        return DeadLetter(found["at"], found["reason"], found["envelope"].encode())
    except (ValueError, LookupError, TypeError, AttributeError):
        logger.warning("cannot read a dead letter of %s bytes; it is damaged", len(line))
        return None


def _whole_lines(path: Path) -> int:
    """The size without a line that was cut by a full disk or a kill."""
    return path.read_bytes().rfind(b"\n") + 1


@contextmanager
def locked_state(folder: Path) -> Iterator[Path]:
    """Create *folder* and lock it. Raises UserError if another process has it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / "lock").open("a")
    except OSError as error:
        raise _unusable(folder, error) from None
    with lock:
        _lock(
            lock,
            f"logship.state_dir {str(folder)!r} is in use by another mm2slo logship; stop it, "
            "or set another state_dir if it ships other files",
        )
        yield folder


def _unusable(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"cannot use logship.state_dir {str(folder)!r}: {error.strerror}; expected a folder "
        "that this user can write to"
    )


def _lock(file: TextIO, text: str) -> None:
    """Lock *file* until it is closed. Raises UserError with *text* if another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(text) from None
