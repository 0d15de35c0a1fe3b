"""Runs migrations with Alembic, which is slow to import: import this only to run one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory

from mm2slo_store.schema import VERSION_TABLE

if TYPE_CHECKING:
    from sqlalchemy import Connection


def scripts() -> ScriptDirectory:
    """The migrations of this package."""
    config = Config()
    config.set_main_option("script_location", "mm2slo_store:migrations")
    return ScriptDirectory.from_config(config)


def known_revisions() -> frozenset[str]:
    """Revisions that this version can upgrade."""
    return frozenset(each.revision for each in scripts().walk_revisions())


def upgrade(connection: Connection, to: str = "head") -> None:
    """Run missing migrations up to *to* in the transaction of *connection*."""
    script = scripts()

    def missing(revision: str, _context: object) -> object:
        return script._upgrade_revs(to, revision)

    with EnvironmentContext(Config(), script, fn=missing, destination_rev=to) as environment:
        environment.configure(
            connection=connection, version_table=VERSION_TABLE, transactional_ddl=True
        )
        with environment.begin_transaction():
            environment.run_migrations()
