"""The folder with checkpoints and dead letters, used by one process at a time."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def locked_state(folder: Path) -> Iterator[Path]:
    """Create *folder* and lock it. Raises UserError if another process has it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / "lock").open("a")
    except OSError as error:
        raise UserError(
            f"cannot use logship.state_dir {str(folder)!r}: {error.strerror}; expected a folder "
            "that this user can write to"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"logship.state_dir {str(folder)!r} is in use by another mm2slo logship; stop it, "
                "or set another state_dir if it ships other files"
            ) from None
        yield folder
