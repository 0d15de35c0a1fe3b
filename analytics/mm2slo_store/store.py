"""The results store."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mm2slo_store.audit_queries import AuditQueries
from mm2slo_store.database_errors import raise_user_errors
from mm2slo_store.digest_claims import DigestClaims
from mm2slo_store.engine import engine_for
from mm2slo_store.exclusions import Exclusions
from mm2slo_store.leases import Leases
from mm2slo_store.publication import Publication
from mm2slo_store.schema_version import upgrade_if_older
from mm2slo_store.sli_history import SliHistory
from mm2slo_store.sqlite_file import prepare
from mm2slo_store.store_address import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Store(AuditQueries, Publication, Leases, Exclusions, SliHistory, DigestClaims):
    """An open store, from `Store.open`. Thread-safe; processes can share a database.

    Every method raises UserError if the database fails, and rolls back.
    """

    @classmethod
    @contextmanager
    def open(
        cls, url_or_path: str | Path, *, clock: Callable[[], int] = _now_ms
    ) -> Iterator[Store]:
        """Open a store; create it or upgrade its schema if needed.

        *url_or_path* is a path, `sqlite:///PATH`, or `postgresql://USER@HOST/DATABASE` (extra
        `postgres`); *clock* returns epoch ms. Raises UserError, and changes nothing, if the address
        is invalid, or the store is unreachable, read-only, corrupt, of another program or of a
        newer version.
        """
        address = parse_address(url_or_path)
        engine = engine_for(address)
        try:
            with raise_user_errors(address):
                if address.file is not None:
                    prepare(address.file)
                upgrade_if_older(engine, address)
            yield cls(engine, address, clock)
        finally:
            engine.dispose()
