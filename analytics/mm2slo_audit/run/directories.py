"""Run directories: one for each run below the folder of the record detail."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class RunDirectories:
    """Run directories on any path that Spark can write.

    *delete_elsewhere* deletes what is no local path (`hdfs://...`, `s3a://...`), by Spark's own
    file systems.
    """

    def __init__(self, base: str, delete_elsewhere: Callable[[str], None] | None = None) -> None:
        self._base = _absolute(base)
        self._delete_elsewhere = delete_elsewhere

    def of_run(self, run_id: str) -> str:
        """`<base>/<run id>`."""
        return f"{self._base}/{run_id}"

    def delete(self, path: str) -> None:
        """Delete *path*; what is not below the base is not ours and stays."""
        if not path.startswith(f"{self._base}/"):
            return
        local = local_path(path)
        if local is not None:
            shutil.rmtree(local, ignore_errors=True)
        elif self._delete_elsewhere is not None:
            self._delete_elsewhere(path)


def local_path(path: str) -> Path | None:
    """The local path of a path or `file:` URL; None for any other URL."""
    scheme, colon, rest = path.partition(":")
    if colon and len(scheme) > 1 and "/" not in scheme:
        return Path("/" + rest.lstrip("/")) if scheme == "file" else None
    return Path(path)


def _absolute(base: str) -> str:
    """Whatever folder the next run is started from, the store's paths must still lead there."""
    local = local_path(base)
    if local is None or base.startswith("file:"):
        return base.rstrip("/")
    return str(local.expanduser().absolute())
