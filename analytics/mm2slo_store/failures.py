"""What a database refuses, in a sentence for the user: what, where, and what to do."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_store.address import Address

_SQLITE_ADVICE = (
    (
        "not a database",
        "is not a SQLite database: give another path, or move the file away",
    ),
    (
        "malformed",
        "is corrupt: restore it from a copy, or move it away and audit its windows again",
    ),
    (
        "locked",
        "is being written to by another process: try again when that has ended",
    ),
    (
        "readonly",
        "cannot be written to: give this user the right to write the file and its folder",
    ),
    (
        "unable to open",
        "cannot be opened: give this user the right to write the file and its folder",
    ),
    ("disk is full", "has no room left on its disk: make room, then run again"),
    ("disk i/o", "cannot be read or written (disk I/O error): check the disk it is on"),
)


@contextmanager
def told(address: Address) -> Iterator[None]:
    """Turn what the database raises into a UserError about *address*."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        raise UserError(sentence(address, error)) from error


def sentence(address: Address, error: Exception) -> str:
    """What *error* means for the store at *address*."""
    cause = _cause(error)
    if address.file is None:
        hint = (
            "check that PostgreSQL runs there, and the user, password and database"
            if _never_connected(error)
            else "what was being written is undone; see PostgreSQL's log"
        )
        return f"the store {address.shown} failed: {cause}; {hint}"
    for sign, advice in _SQLITE_ADVICE:
        if sign in cause.lower():
            return f"the store {address.shown} {advice}"
    return f"the store {address.shown} failed: {cause}; what was being written is undone"


def _never_connected(error: Exception) -> bool:
    # A statement is named by every error but those of the connection itself.
    return isinstance(error, DBAPIError) and error.statement is None


def _cause(error: Exception) -> str:
    """The driver's own words, on one line; never the statement, never its values."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    # psycopg appends the statement's line to its message, unless asked for the message alone.
    message = getattr(getattr(origin, "diag", None), "message_primary", None) or str(origin)
    text = " ".join(message.split())
    return text or type(error).__name__
