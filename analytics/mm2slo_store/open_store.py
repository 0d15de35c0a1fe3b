"""The base of the open store's parts: engine, address and clock."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mm2slo_store.database_errors import raise_user_errors
from mm2slo_store.engine import read_transaction, write_transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

    from mm2slo_store.store_address import StoreAddress


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
