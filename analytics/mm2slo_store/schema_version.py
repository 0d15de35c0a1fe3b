"""Creates or upgrades the schema when a store is opened; refuses stores of newer versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, column, inspect, select, table

from mm2slo_core.user_errors import UserError
from mm2slo_store.engine import read_transaction, write_transaction
from mm2slo_store.schema import REVISION, VERSION_TABLE

if TYPE_CHECKING:
    from mm2slo_store.store_address import StoreAddress


def upgrade_if_older(engine: Engine, address: StoreAddress) -> None:
    """Create the tables or run missing migrations, in one transaction.

    Raises UserError if a newer version of mm2slo wrote the store.
    """
    with read_transaction(engine) as connection:
        if _revision(connection) == REVISION:
            return
    from mm2slo_store.schema_upgrade import create, known_revisions, upgrade

    with write_transaction(engine) as connection:
        found = _revision(connection)
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


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = table(VERSION_TABLE, column("version_num"))
    found = connection.execute(select(version.c.version_num)).scalar()
    return None if found is None else str(found)
