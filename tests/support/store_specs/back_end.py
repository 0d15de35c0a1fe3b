"""An empty store for a test, with access from outside."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import MetaData, create_engine, select, text
from sqlalchemy.pool import NullPool

from mm2slo_store.store import Store


@dataclass
class Clock:
    """A clock that tests set; epoch ms."""

    now: int = 10_000

    def __call__(self) -> int:
        return self.now


@dataclass(frozen=True)
class BackEnd:
    """The store of a test."""

    address: str
    clock: Clock = field(default_factory=Clock)

    def open(self) -> AbstractContextManager[Store]:
        return Store.open(self.address, clock=self.clock)

    @contextmanager
    def raw(self) -> Iterator[Any]:
        """A connection without the store's classes."""
        engine = create_engine(self.url, poolclass=NullPool)
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    def check(self) -> None:
        """Check the database for corruption, if it can."""

    @property
    def url(self) -> str:
        return self.address.replace("postgresql://", "postgresql+psycopg://", 1)

    def content(self) -> dict[str, list[str]]:
        """Every row of every table, as text in a fixed order."""
        with self.raw() as connection:
            tables = MetaData()
            tables.reflect(connection)
            return {
                table.name: sorted(
                    repr(dict(row)) for row in connection.execute(select(table)).mappings()
                )
                for table in tables.sorted_tables
            }


@dataclass(frozen=True)
class SqliteBackEnd(BackEnd):
    """A SQLite file."""

    @property
    def url(self) -> str:
        return f"sqlite:///{self.address}"

    def check(self) -> None:
        with self.raw() as connection:
            (answer,) = connection.execute(text("PRAGMA integrity_check")).one()
            assert answer == "ok"
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
