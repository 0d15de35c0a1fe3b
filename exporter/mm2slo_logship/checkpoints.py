"""Up to where each file has been accepted, in a file that survives kills and power loss."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import orjson

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SYNC_INTERVAL: Final = 1.0
_NAME: Final = "checkpoints.json"
_SYNCED: Final = "checkpoints.synced.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
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
        self._by_id = {each.file_id: each for each in _load(folder)}
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Checkpoint]:
        with self._lock:
            return iter(tuple(self._by_id.values()))

    def put(self, checkpoint: Checkpoint) -> None:
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
                _replace(self._folder / _SYNCED, body, sync=True)
                self._synced_at = now
            _replace(self._folder / _NAME, body, sync=False)


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


def _load(folder: Path) -> list[Checkpoint]:
    found = [path for path in (folder / _NAME, folder / _SYNCED) if path.exists()]
    for path in found:
        try:
            document = orjson.loads(path.read_bytes())
            return [Checkpoint(**each) for each in document["files"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    if found:
        raise UserError(
            f"cannot read the checkpoints {str(found[0])!r}; expected the file that mm2slo "
            "logship wrote; restore it, or remove it to ship all files from their start"
        )
    return []
