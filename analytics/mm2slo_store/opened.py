"""What every part of an open store stands on: its engine, its place, its clock."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mm2slo_store.engine import begin_reading, begin_writing
from mm2slo_store.failures import told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

    from mm2slo_store.address import Address


class OpenStore:
    """A database that is reached and up to date. *clock* gives epoch ms."""

    def __init__(self, engine: Engine, address: Address, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._address = address
        self._clock = clock

    @property
    def shown(self) -> str:
        """Where the store is, for messages; without its password."""
        return self._address.shown

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with told(self._address), begin_reading(self._engine) as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with told(self._address), begin_writing(self._engine) as connection:
            yield connection
