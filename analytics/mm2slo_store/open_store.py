"""An open store's database: address, transactions, checks, schema version and errors.

SQLite (WAL, one writer at a time) or PostgreSQL. `read_transaction` sees a consistent snapshot;
`write_transaction` excludes other writers from its first statement on, so it never fails half-way
because of a conflict. Messages never show a password.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    column,
    create_engine,
    event,
    inspect,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
from sqlalchemy.dialects.sqlite import Insert as SqliteInsert
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from mm2slo_core.config.field_types import escape_credentials
from mm2slo_core.user_errors import MissingExtraError, UserError
from mm2slo_store.row_conversion import dumps
from mm2slo_store.store_schema import REVISION, VERSION_TABLE


class OpenStore:
    """A connected database with a current schema. *clock* returns epoch ms."""

    def __init__(self, engine: Engine, address: StoreAddress, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._address = address
        self._clock = clock

    @property
    def redacted(self) -> str:
        """The address for messages, without its password."""
        return self._address.redacted

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with raise_user_errors(self._address), read_transaction(self._engine) as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with raise_user_errors(self._address), write_transaction(self._engine) as connection:
            yield connection


BUSY_TIMEOUT_MS: Final = 30_000
"""Time that a writer waits for another one."""
CONNECT_TIMEOUT_S: Final = 10
_WRITES: Final = {"mm2slo_writes": True}
_LOCK: Final = 0x6D6D32736C6F  # "mm2slo"


def engine_for(address: StoreAddress) -> Engine:
    """An engine for *address*, not connected yet.

    Raises MissingExtraError if the driver is not installed.
    """
    if address.file is not None:
        return _sqlite_engine(address)
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtraError(module="psycopg", extra="postgres")
    # Otherwise that of the database: psycopg could then not send some characters, and would raise
    # an error that is not one of the database.
    options: dict[str, Any] = {"client_encoding": "UTF8"}
    if "connect_timeout" not in address.url.query:
        options["connect_timeout"] = CONNECT_TIMEOUT_S
    # SQLAlchemy would show the values of a failed statement; and a server, or a firewall on the
    # way, may have closed a connection that was idle in the pool.
    return create_engine(
        address.url,
        json_serializer=dumps,
        connect_args=options,
        hide_parameters=True,
        pool_pre_ping=True,
    )


@contextmanager
def read_transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction with a consistent snapshot."""
    # PostgreSQL's default, READ COMMITTED, takes a snapshot per statement, so that a run and its
    # units could be of different publications (documentation, 13.2).
    options = {} if _is_sqlite(engine) else {"isolation_level": "REPEATABLE READ"}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """An atomic transaction; one at a time per store."""
    with engine.connect().execution_options(**_WRITES) as connection, connection.begin():
        if not _is_sqlite(engine):
            # Without it, PostgreSQL waits without limit, as for a writer whose host has stopped.
            connection.execute(text(f"SET LOCAL lock_timeout = {BUSY_TIMEOUT_MS}"))
            # Serializes writers on PostgreSQL too, as SQLite does.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        yield connection


def _sqlite_engine(address: StoreAddress) -> Engine:
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
        # In WAL mode, NORMAL loses the last commits with the power (sqlite.org/pragma.html).
        dbapi.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _start_transaction(connection: Connection) -> None:
        # A transaction that has read cannot write once another has written: SQLITE_BUSY_SNAPSHOT,
        # which waiting does not cure (sqlite.org/rescode.html). So writers start as such.
        writes = connection.get_execution_options().get("mm2slo_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _is_sqlite(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"


def insert_into(connection: Connection, table: Table) -> SqliteInsert | PostgresInsert:
    """An insert with ON CONFLICT in the dialect of *connection*."""
    # Importing the unused dialect takes as long as importing the rest of this package.
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


_EXPECTED = "expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The address of a store."""

    url: URL
    file: Path | None
    """The SQLite file; None: PostgreSQL."""

    @property
    def redacted(self) -> str:
        """The address without its password, and without its query, which may hold one."""
        if self.file is not None:
            return str(self.file)
        plain = self.url.set(drivername="postgresql", query={})
        return plain.render_as_string(hide_password=True)


def parse_address(url_or_path: str | Path) -> StoreAddress:
    """Parse an address. Raises UserError, without secrets, if it is invalid."""
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return _file(Path(url_or_path))
    scheme = url_or_path.split("://", 1)[0]
    try:
        url = make_url(escape_credentials(url_or_path))
    except (ArgumentError, ValueError):
        raise UserError(f"invalid store address of scheme {scheme}; {_EXPECTED}") from None
    match url.drivername:
        case "sqlite":
            if url.query or url.host:
                raise UserError(f"store address sqlite://... takes only a path; {_EXPECTED}")
            return _file(Path(url.database or ""))
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return StoreAddress(url.set(drivername="postgresql+psycopg"), None)
        case _:
            raise UserError(f"unknown store type {scheme!r}; {_EXPECTED}")


def _file(path: Path) -> StoreAddress:
    if path in (Path(), Path(":memory:")):
        raise UserError(f"store address without a file; {_EXPECTED}")
    absolute = path.expanduser().absolute()
    return StoreAddress(URL.create("sqlite", database=str(absolute)), absolute)


CHEAP_CHECK_BYTES: Final = 32 * 1024 * 1024
"""Files up to this size are checked completely on open, in about 0.1 s."""
_MAGIC: Final = b"SQLite format 3\x00"


def prepare_sqlite_file(file: Path) -> None:
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


def upgrade_if_older(engine: Engine, address: StoreAddress) -> None:
    """Create the tables or run missing migrations, in one transaction.

    Raises UserError if a newer version of mm2slo wrote the store.
    """
    with read_transaction(engine) as connection:
        if _schema_revision(connection) == REVISION:
            return
    from mm2slo_store.schema_upgrade import create, known_revisions, upgrade

    with write_transaction(engine) as connection:
        found = _schema_revision(connection)
        if found == REVISION:  # another process upgraded it
            return
        if found is None:
            create(connection)
        elif found in known_revisions():
            upgrade(connection)
        else:
            raise UserError(
                f"the store {address.redacted} was written by a newer version of mm2slo "
                f"(schema {found}; this version knows {REVISION}): upgrade mm2slo, "
                "or give another store"
            )


def _schema_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = table(VERSION_TABLE, column("version_num"))
    found = connection.execute(select(version.c.version_num)).scalar()
    return None if found is None else str(found)


_LOCKED: Final = "is locked by another process: try again when that has finished"
_LOCK_TIMEOUT: Final = "55P03"  # PostgreSQL's lock_not_available
_SQLITE_ADVICE = (
    (
        "not a database",
        "is not a SQLite database: give another path, or move the file away",
    ),
    (
        "malformed",
        "is corrupt: restore it from a backup, or move it away and audit its windows again",
    ),
    ("locked", _LOCKED),
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
        if getattr(_origin(error), "sqlstate", None) == _LOCK_TIMEOUT:
            return f"the store {address.redacted} {_LOCKED}"
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


def _origin(error: Exception) -> BaseException | None:
    return error.orig if isinstance(error, DBAPIError) else error


def _cause(error: Exception) -> str:
    """The driver's message on one line, without the statement and its values."""
    origin = _origin(error)
    # str() of a psycopg error includes the statement; its primary message does not.
    message = getattr(getattr(origin, "diag", None), "message_primary", None) or str(origin)
    text = " ".join(message.split())
    return text or type(error).__name__
