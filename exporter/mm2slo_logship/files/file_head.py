"""The first bytes of a file: what makes it the same file after a rename or a compression."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from mm2slo_logship.checkpoints import Checkpoint

if TYPE_CHECKING:
    from mm2slo_logship.files.file_content import FileContent
    from mm2slo_logship.files.source import FoundFile

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


def has_head(content: FileContent, checkpoint: Checkpoint) -> bool:
    """Whether *content* starts as the file of *checkpoint* does."""
    return head_hash(content, checkpoint.head_length) == checkpoint.head_hash


def first_checkpoint(
    key: tuple[int, int], found: FoundFile, line: bytes, generation: int
) -> Checkpoint:
    """The checkpoint of a file that starts with *line*, of which nothing is accepted.

    Its id is the same for the same bytes, also after a kill.
    """
    return Checkpoint(
        file_id=digest(b"%d %d %d " % (*key, generation) + line),
        path=str(found.path),
        pattern=found.pattern,
        device=key[0],
        inode=key[1],
        head_length=len(line),
        head_hash=digest(line),
        generation=generation,
    )


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()
