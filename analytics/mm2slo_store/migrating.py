"""The schema is brought up to date on open; forward only, and never down from a newer version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, column, inspect, select, table

from mm2slo_core.errors import UserError
from mm2slo_store.engine import begin_reading, begin_writing
from mm2slo_store.schema import REVISION, VERSION_TABLE

if TYPE_CHECKING:
    from mm2slo_store.address import Address


def bring_up_to_date(engine: Engine, address: Address) -> None:
    """Run the migrations that the store lacks, in one transaction.

    Raises UserError when a newer version of mm2slo wrote it.
    """
    with begin_reading(engine) as connection:
        if _revision(connection) == REVISION:
            return
    from mm2slo_store.upgrading import known_revisions, upgrade

    with begin_writing(engine) as connection:
        found = _revision(connection)
        if found == REVISION:  # another process was faster
            return
        if found is not None and found not in known_revisions():
            raise UserError(
                f"the store {address.shown} was written by a newer version of mm2slo "
                f"(schema {found}; this version knows {REVISION}): upgrade mm2slo, "
                "or give another store"
            )
        upgrade(connection)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = table(VERSION_TABLE, column("version_num"))
    found = connection.execute(select(version.c.version_num)).scalar()
    return None if found is None else str(found)
