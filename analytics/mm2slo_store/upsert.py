"""INSERT ... ON CONFLICT, which SQLAlchemy has per dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert


def insert_into(connection: Connection, table: Table) -> SqliteInsert | PostgresInsert:
    """An insert with ON CONFLICT in the dialect of *connection*."""
    # Importing the unused dialect takes as long as importing the rest of this package.
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)
