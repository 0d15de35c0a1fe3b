"""The bytes of a log file, plain or compressed by a rotation."""

from __future__ import annotations

import gzip
import os
import zlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path


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
