"""Where a file is that was rotated while mm2slo logship was not running."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mm2slo_logship.files.file_content import open_content
from mm2slo_logship.files.file_head import has_head
from mm2slo_logship.files.source import FoundFile

if TYPE_CHECKING:
    from mm2slo_logship.checkpoints import Checkpoint


def find_rotated(known: Checkpoint) -> tuple[tuple[int, int], FoundFile] | None:
    """Device and inode, and the file of *known* under another name of its folder or compressed."""
    try:
        paths = sorted(Path(known.path).parent.iterdir())
    except OSError:
        return None
    for path in paths:
        try:
            status = path.stat()
            key = (status.st_dev, status.st_ino)
            if (key == (known.device, known.inode) or path.suffix == ".gz") and _is_same(
                path, known
            ):
                return key, FoundFile(path, known.pattern, is_rotated=True)
        except (OSError, EOFError):
            continue  # another file, or one that cannot be read
    return None


def _is_same(path: Path, known: Checkpoint) -> bool:
    content = open_content(path)
    try:
        return has_head(content, known)
    finally:
        content.close()
