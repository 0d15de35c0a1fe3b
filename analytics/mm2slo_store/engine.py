"""Transactions on SQLite (WAL, one writer at a time) or PostgreSQL.

`read_transaction` sees a consistent snapshot; `write_transaction` excludes other writers from its
first statement on, so it never fails half-way because of a conflict.
"""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, text

from mm2slo_core.user_errors import MissingExtraError
from mm2slo_store.json_encoding import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_store.store_address import StoreAddress

BUSY_TIMEOUT_MS: Final = 30_000
CONNECT_TIMEOUT_S: Final = 10
_WRITES: Final = {"mm2slo_writes": True}
_LOCK: Final = 0x6D6D32736C6F  # "mm2slo"


def engine_for(address: StoreAddress) -> Engine:
    """An engine for *address*, not connected yet.

    Raises MissingExtraError if the driver is not installed.
    """
    if address.file is not None:
        return _sqlite(address)
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtraError(module="psycopg", extra="postgres")
    timeout = (
        {} if "connect_timeout" in address.url.query else {"connect_timeout": CONNECT_TIMEOUT_S}
    )
    return create_engine(
        address.url,
        json_serializer=dumps,
        connect_args=timeout,
        hide_parameters=True,
        pool_pre_ping=True,
    )


@contextmanager
def read_transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction with a consistent snapshot."""
    options = {} if _is_sqlite(engine) else {"isolation_level": "REPEATABLE READ"}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """An atomic transaction; one at a time per store."""
    with engine.connect().execution_options(**_WRITES) as connection, connection.begin():
        if not _is_sqlite(engine):
            # Serializes writers on PostgreSQL too, as SQLite does.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        yield connection


def _sqlite(address: StoreAddress) -> Engine:
    engine = create_engine(
        address.url,
        json_serializer=dumps,
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000},
    )

    @event.listens_for(engine, "connect")
    def _prepare(dbapi: Any, _record: object) -> None:
        # The driver's implicit transactions start too late for reads and DDL: start them here.
        dbapi.isolation_level = None
        dbapi.execute("PRAGMA foreign_keys = ON")
        dbapi.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _start_transaction(connection: Connection) -> None:
        writes = connection.get_execution_options().get("mm2slo_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _is_sqlite(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"
