"""Checks a SQLite file before anything is written to it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from mm2slo_core.user_errors import UserError
from mm2slo_store.engine import BUSY_TIMEOUT_MS
from mm2slo_store.schema import VERSION_TABLE

if TYPE_CHECKING:
    from pathlib import Path

CHEAP_CHECK_BYTES: Final = 32 * 1024 * 1024
"""Files up to this size are checked completely on open, in about 0.1 s."""
_MAGIC: Final = b"SQLite format 3\x00"


def prepare(file: Path) -> None:
    """Create the folder, check the file and turn on its write-ahead log.

    Raises UserError or sqlite3.Error, and leaves the file unchanged, if it cannot be a store.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        in_its_place = isinstance(error, (FileExistsError, NotADirectoryError))
        why = "a file is in its place" if in_its_place else error.strerror
        raise UserError(
            f"the store {file} cannot be created: its folder cannot be created ({why}); "
            "give a path in a folder this user can write to"
        ) from error
    size = _size_of_database(file)
    with closing(sqlite3.connect(file, timeout=BUSY_TIMEOUT_MS / 1000)) as connection:
        if size:
            _refuse_foreign_database(connection, file)
        if 0 < size <= CHEAP_CHECK_BYTES:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if answer != "ok":
                raise sqlite3.DatabaseError(f"malformed: {answer}")
        _turn_on_wal(connection)


def _size_of_database(file: Path) -> int:
    """Bytes of the file; 0 if it is missing or empty."""
    if file.is_dir():
        raise UserError(f"the store {file} is a folder: give the path of a file, such as audit.db")
    try:
        with file.open("rb") as opened:
            head = opened.read(len(_MAGIC))
        size = file.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise UserError(
            f"the store {file} cannot be read ({error.strerror}): "
            "grant this user read and write access"
        ) from error
    if head and head != _MAGIC:
        raise UserError(
            f"the store {file} is not a SQLite database: give another path, or move the file away"
        )
    return size


def _refuse_foreign_database(connection: sqlite3.Connection, file: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if tables and VERSION_TABLE not in tables:
        raise UserError(
            f"the store {file} is the database of another program "
            f"(it has a table {min(tables)}, but no {VERSION_TABLE}): give another path"
        )


def _turn_on_wal(connection: sqlite3.Connection) -> None:
    """Retry: SQLite ignores its timeout and fails as locked if two processes do this."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
