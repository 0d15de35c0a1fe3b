"""The log files of one entry of `logship.sources`: their discovery, content and identity.

The first bytes of a file make it the same file after a rename or a compression.
"""

import glob
import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from mm2slo_logship.log_events import Parser
from mm2slo_logship.ship_state import FileCheckpoint


class FoundFile(NamedTuple):
    """A file that a pattern matches; *is_rotated*: kubelet has rotated it."""

    path: Path
    pattern: str
    is_rotated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Files of one kind, and the metadata of their events."""

    patterns: tuple[str, ...]
    new_parser: Callable[[], Parser]
    host: str
    sourcetype: str
    index: str | None = None
    is_cri: bool = False

    def find_files(self) -> Iterator[FoundFile]:
        """Existing files, behind symlinks, with those that kubelet rotated."""
        for pattern in self.patterns:
            for name in sorted(glob.iglob(pattern, recursive=True)):  # noqa: PTH207 - absolute
                path = Path(os.path.realpath(name))
                yield FoundFile(path, pattern)
                if self.is_cri:
                    for sibling in sorted(path.parent.glob(f"{glob.escape(path.name)}.*")):
                        # kubelet writes an archive as .tmp, and renames it when it is complete
                        # (pkg/kubelet/logs/container_log_manager.go).
                        if sibling.suffix != ".tmp":
                            yield FoundFile(sibling, pattern, is_rotated=True)


def path_text(path: Path) -> str:
    """*path* for JSON and logs; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def reason_text(error: Exception) -> str:
    """Why a file cannot be read, without its path."""
    return getattr(error, "strerror", None) or str(error)


class FileContent(Protocol):
    """Bytes by offset. Every method may raise OSError; a cut gzip file raises EOFError."""

    is_complete: bool  # nothing will be appended

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to *size* bytes; empty at the end."""
        ...

    def size(self) -> int:
        """Bytes from the start to the current end; of gzip, what has been read so far."""
        ...

    def is_deleted(self) -> bool:
        """Whether no directory contains the file any more."""
        ...

    def close(self) -> None: ...


class PlainContent:
    """A file that may grow, and is readable after it was renamed or deleted."""

    is_complete = False

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read_at(self, offset: int, size: int) -> bytes:
        return os.pread(self.descriptor, size, offset)

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def is_deleted(self) -> bool:
        return os.fstat(self.descriptor).st_nlink == 0

    def close(self) -> None:
        os.close(self.descriptor)


class GzipContent:
    """A rotated file that kubelet or logrotate compressed; offsets are those of the log."""

    is_complete = True

    def __init__(self, path: Path) -> None:
        self._size = 0
        self._file = gzip.open(path, "rb")  # noqa: SIM115 - open as long as it is read

    def read_at(self, offset: int, size: int) -> bytes:
        try:
            self._file.seek(offset)
            found = self._file.read(size)
        except zlib.error as error:
            raise OSError(f"damaged gzip file: {error}") from None
        self._size = max(self._size, offset + len(found))
        return found

    def size(self) -> int:
        return self._size

    def is_deleted(self) -> bool:
        return os.fstat(self._file.fileno()).st_nlink == 0

    def close(self) -> None:
        self._file.close()


def open_content(path: Path) -> FileContent:
    """Open *path*. Raises OSError."""
    return GzipContent(path) if path.suffix == ".gz" else PlainContent(path)


HEAD: Final = 1024


def first_line(content: FileContent) -> bytes | None:
    """The first line up to 1 KiB; None as long as it is incomplete."""
    head = content.read_at(0, HEAD)
    end = head.find(b"\n")
    if end >= 0:
        return head[: end + 1]
    return head if len(head) == HEAD or (head and content.is_complete) else None


def head_hash(content: FileContent, length: int) -> str | None:
    """The hash of the first *length* bytes; None if the file is shorter."""
    head = content.read_at(0, length)
    return digest(head) if len(head) == length else None


def has_head(content: FileContent, checkpoint: FileCheckpoint) -> bool:
    """Whether *content* starts as the file of *checkpoint* does."""
    return head_hash(content, checkpoint.head_length) == checkpoint.head_hash


def first_checkpoint(
    key: tuple[int, int], found: FoundFile, line: bytes, generation: int
) -> FileCheckpoint:
    """The checkpoint of a file that starts with *line*, of which nothing is accepted.

    Its id is the same for the same bytes, also after a kill.
    """
    return FileCheckpoint(
        file_id=digest(b"%d %d %d " % (*key, generation) + line),
        path=path_text(found.path),
        pattern=found.pattern,
        device=key[0],
        inode=key[1],
        head_length=len(line),
        head_hash=digest(line),
        generation=generation,
    )


def digest(data: bytes) -> str:
    """A short digest that identifies content; not for security."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()
