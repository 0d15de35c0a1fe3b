"""Where a file is that was rotated while mm2slo logship was not running."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mm2slo_logship.files.file_content import open_content
from mm2slo_logship.files.file_head import has_head

if TYPE_CHECKING:
    from mm2slo_logship.checkpoints import Checkpoint


def find_rotated(known: Checkpoint) -> Path | None:
    """The file of *known* under another name of its folder, or compressed there."""
    try:
        paths = sorted(Path(known.path).parent.iterdir())
    except OSError:
        return None
    return next((path for path in paths if _is_same(path, known)), None)


def _is_same(path: Path, known: Checkpoint) -> bool:
    try:
        status = path.stat()
        if (status.st_dev, status.st_ino) != (known.device, known.inode) and path.suffix != ".gz":
            return False
        content = open_content(path)
        try:
            return has_head(content, known)
        finally:
            content.close()
    except (OSError, EOFError):
        return False  # another file, or one that cannot be read
