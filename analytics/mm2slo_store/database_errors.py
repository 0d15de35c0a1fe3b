"""Turns database errors into messages for the user."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_store.store_address import StoreAddress

_SQLITE_ADVICE = (
    (
        "not a database",
        "is not a SQLite database: give another path, or move the file away",
    ),
    (
        "malformed",
        "is corrupt: restore it from a backup, or move it away and audit its windows again",
    ),
    (
        "locked",
        "is locked by another process: try again when that has finished",
    ),
    (
        "readonly",
        "cannot be written to: grant this user write access to the file and its folder",
    ),
    (
        "unable to open",
        "cannot be opened: grant this user write access to the file and its folder",
    ),
    ("disk is full", "has no disk space left: free some; services then continue"),
    ("disk i/o", "cannot be read or written (disk I/O error): check its disk"),
)


@contextmanager
def raise_user_errors(address: StoreAddress) -> Iterator[None]:
    """Turn database errors into a UserError about *address*."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        raise UserError(describe_error(address, error)) from error


def describe_error(address: StoreAddress, error: Exception) -> str:
    """A message about *error* of the store at *address*."""
    cause = _cause(error)
    if address.file is None:
        hint = (
            "check that PostgreSQL is running there, and the user, password and database"
            if _never_connected(error)
            else "the transaction was rolled back; see PostgreSQL's log"
        )
        return f"the store {address.redacted} failed: {cause}; {hint}"
    for sign, advice in _SQLITE_ADVICE:
        if sign in cause.lower():
            return f"the store {address.redacted} {advice}"
    return f"the store {address.redacted} failed: {cause}; the transaction was rolled back"


def _never_connected(error: Exception) -> bool:
    # All errors but those of connecting have a statement.
    return isinstance(error, DBAPIError) and error.statement is None


def _cause(error: Exception) -> str:
    """The driver's message on one line, without the statement and its values."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    # str() of a psycopg error includes the statement; its primary message does not.
    message = getattr(getattr(origin, "diag", None), "message_primary", None) or str(origin)
    text = " ".join(message.split())
    return text or type(error).__name__
