"""INSERT ... ON CONFLICT, which SQLAlchemy has for each database apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert


def insert_into(connection: Connection, table: Table) -> SqliteInsert | PostgresInsert:
    """An insert that may be told what to do on a conflict, for the database of *connection*."""
    # The dialect that is not used takes as long to load as the rest of the store's own code.
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)
