"""The files of all sources, followed through rotations, truncations and restarts."""

import logging
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from mm2slo_logship.log_files import (
    FileContent,
    FoundFile,
    Source,
    first_checkpoint,
    first_line,
    has_head,
    open_content,
    path_text,
    reason_text,
)
from mm2slo_logship.ship_state import Checkpoints, FileCheckpoint
from mm2slo_logship.tailed_file import TailedFile

logger = logging.getLogger(__name__)
_Inode = tuple[int, int]


class FileWatch:
    """Open files by device and inode; *report_loss* gets path, reason and bytes (0: unknown).

    It reads those of *index*; a file that several sources match belongs to the first of them.
    A renamed or deleted file stays open until it is read to its end and accepted.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        checkpoints: Checkpoints,
        report_loss: Callable[[Path, str, int], None],
        *,
        index: str | None,
        max_deleted_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        by_pattern = {pattern: each for each in sources for pattern in each.patterns}
        self._sources = {name: each for name, each in by_pattern.items() if each.index == index}
        self._other_patterns = by_pattern.keys() - self._sources.keys()
        self._each_source = sources
        self._checkpoints = checkpoints
        self._report_loss = report_loss
        self._max_deleted_bytes = max_deleted_bytes
        self._clock = clock
        self._finished: dict[_Inode, Path] = {}  # an inode may be used again, with another name
        self._unreadable: dict[Path, str] = {}
        self._reported: dict[Path, str] = {}  # at the previous refresh
        self._files: dict[_Inode, TailedFile] = {}
        self._is_first = True

    @property
    def files(self) -> Sequence[TailedFile]:
        return tuple(self._files.values())

    @property
    def unreadable(self) -> int:
        return len(self._unreadable)

    def refresh(self) -> None:
        """Look for new, rotated, truncated and deleted files."""
        now = self._clock()
        self._reported, self._unreadable = self._unreadable, {}
        found = self._find()
        for key, each in found.items():
            if key not in self._files and each.pattern in self._sources:
                self._try_open(key, each)
        # An archive of a file that was closed at the previous refresh is recognised by now.
        self._forget(found)
        if self._is_first:
            self._is_first = False
            self._open_rotated()
        for key, file in tuple(self._files.items()):
            try:
                self._follow(key, file, found.get(key), now)
            except OSError as error:
                self.reopen(file, error)
        self._limit_deleted()

    def _follow(self, key: _Inode, file: TailedFile, found: FoundFile | None, now: float) -> None:
        if found is not None:
            file.path = found.path
        if file.is_truncated():
            self._restart(key, file)
            return
        file.refresh()
        self._checkpoints.put(file.checkpoint)
        if found is not None and not found.is_rotated:
            file.rotated_at = None
        elif file.rotated_at is None:
            file.rotated_at = now
        elif file.is_finished:
            self._close(key)

    def accept(self, file: TailedFile, end: int) -> None:
        """All events of *file* up to *end* are accepted."""
        file.accept(end)
        if self._files.get((file.checkpoint.device, file.checkpoint.inode)) is file:
            self._checkpoints.put(file.checkpoint)

    def reopen(self, file: TailedFile, error: Exception) -> None:
        """Reading *file* failed: try again at the next refresh, from the last checkpoint."""
        self._report_unreadable(file.path, error)
        file.content.close()
        del self._files[file.checkpoint.device, file.checkpoint.inode]

    def close(self) -> None:
        for file in self._files.values():
            file.content.close()
        self._files.clear()

    def _find(self) -> Mapping[_Inode, FoundFile]:
        found: dict[_Inode, FoundFile] = {}
        for source in self._each_source:
            for each in source.find_files():
                try:
                    status = each.path.stat()
                except FileNotFoundError:
                    continue  # rotated since it was listed
                except OSError as error:
                    if each.pattern in self._sources:
                        self._report_unreadable(each.path, error)
                    continue
                if stat.S_ISREG(status.st_mode):
                    found.setdefault((status.st_dev, status.st_ino), each)
        return found

    def _try_open(self, key: _Inode, found: FoundFile) -> None:
        if self._finished.get(key) == found.path:
            return
        try:
            self._open(key, found)
        except (OSError, EOFError) as error:  # a gzip file that is being written is cut
            self._report_unreadable(found.path, error)

    def _report_unreadable(self, path: Path, error: Exception) -> None:
        reason = reason_text(error)
        if self._reported.get(path) != reason:
            logger.warning("cannot read %s: %s; trying again", path_text(path), reason)
        self._unreadable[path] = reason

    def _open(self, key: _Inode, found: FoundFile) -> None:
        content = open_content(found.path)
        try:
            file = self._resume(key, found, content)
        except BaseException:
            content.close()
            raise
        if file is None:
            content.close()
        else:
            self._files[key] = file
            self._checkpoints.put(file.checkpoint)

    def _resume(self, key: _Inode, found: FoundFile, content: FileContent) -> TailedFile | None:
        line = first_line(content)
        if line is None:
            return None
        known = self._known(key, content)
        if known is not None and known.is_done:
            path = path_text(found.path)
            self._checkpoints.put(replace(known, device=key[0], inode=key[1], path=path))
            self._finished[key] = found.path
            return None
        if known is not None and known.pattern in self._other_patterns:
            return None  # renamed while it is read for another index
        if known is not None and known.file_id in self._open_ids():
            return None  # compressed while it is read
        if known is None:
            known = first_checkpoint(key, found, line, self._generation(key))
        elif not content.is_complete and known.offset > content.size():
            lost = max(known.size - known.offset, 0)
            known = self._after_truncation(known, found.path, line, lost)
        known = replace(known, device=key[0], inode=key[1], pattern=found.pattern)
        return TailedFile(found.path, self._sources[found.pattern], content, known)

    def _known(self, key: _Inode, content: FileContent) -> FileCheckpoint | None:
        for each in self._checkpoints:
            # A compressed file is another inode than the one it was; its first bytes are the same.
            is_same = content.is_complete or (each.device, each.inode) == key
            if is_same and has_head(content, each):
                return each
        return None

    def _generation(self, key: _Inode) -> int:
        """Another one than that of an earlier file with this inode, if it is known."""
        inodes = (each for each in self._checkpoints if (each.device, each.inode) == key)
        return max((each.generation + 1 for each in inodes), default=0)

    def _open_ids(self) -> set[str]:
        return {file.checkpoint.file_id for file in self._files.values()}

    def _restart(self, key: _Inode, file: TailedFile) -> None:
        line = first_line(file.content)
        if line is not None:
            new = self._after_truncation(file.checkpoint, file.path, line, file.unread)
            self._files[key] = TailedFile(file.path, file.source, file.content, new)
            self._checkpoints.put(new)

    def _after_truncation(
        self, old: FileCheckpoint, path: Path, line: bytes, lost: int
    ) -> FileCheckpoint:
        self._report_loss(path, "truncated", lost)
        self._checkpoints.remove(old.file_id)
        found = FoundFile(path, old.pattern)
        return first_checkpoint((old.device, old.inode), found, line, old.generation + 1)

    def _open_rotated(self) -> None:
        """Files that were rotated while mm2slo logship was not running."""
        for known in self._checkpoints:
            if known.is_done or known.file_id in self._open_ids():
                continue
            if known.pattern not in self._sources:
                continue  # the source may come back
            if (rotated := find_rotated(known)) is not None:
                self._try_open(*rotated)
            if known.file_id not in self._open_ids():
                self._report_loss(Path(known.path), "deleted", max(known.size - known.offset, 0))
                self._checkpoints.remove(known.file_id)

    def _limit_deleted(self) -> None:
        deleted = [(key, file) for key, file in self._files.items() if file.content.is_deleted()]
        total = sum(file.unsent for _, file in deleted)
        for key, file in deleted:  # the oldest first
            if total <= self._max_deleted_bytes:
                return
            total -= file.unsent
            archive = find_rotated(file.checkpoint)
            if archive is None:
                self._report_loss(file.path, "deleted", file.unsent)
                self._close(key)
            else:
                file.content.close()
                del self._files[key]
                self._try_open(*archive)

    def _close(self, key: _Inode) -> None:
        file = self._files.pop(key)
        file.content.close()
        self._checkpoints.put(replace(file.checkpoint, is_done=True))

    def _forget(self, found: Mapping[_Inode, FoundFile]) -> None:
        for key in self._finished.keys() - found.keys():
            del self._finished[key]
        for each in self._checkpoints:
            is_here = (each.device, each.inode) in found
            if each.is_done and not is_here and each.pattern in self._sources:
                self._checkpoints.remove(each.file_id)


def find_rotated(known: FileCheckpoint) -> tuple[tuple[int, int], FoundFile] | None:
    """Device and inode, and the file of *known* under another name of its folder or compressed."""
    try:
        paths = sorted(Path(known.path).parent.iterdir())
    except OSError:
        return None
    for path in paths:
        try:
            status = path.stat()
            key = (status.st_dev, status.st_ino)
            if key == (known.device, known.inode) or path.suffix == ".gz":
                with closing(open_content(path)) as content:
                    if has_head(content, known):
                        return key, FoundFile(path, known.pattern, is_rotated=True)
        except (OSError, EOFError):
            continue  # another file, or one that cannot be read
    return None
