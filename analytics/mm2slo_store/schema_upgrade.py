"""Creates and upgrades the tables with Alembic, which is slow to import: import this only then."""

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from mm2slo_store.store_schema import VERSION_TABLE, metadata


def scripts() -> ScriptDirectory:
    """The migrations of this package."""
    config = Config()
    config.set_main_option("script_location", "mm2slo_store:migrations")
    return ScriptDirectory.from_config(config)


def known_revisions() -> frozenset[str]:
    """Revisions that this version can upgrade."""
    return frozenset(each.revision for each in scripts().walk_revisions())


def create(connection: Connection) -> None:
    """Create the tables as the newest migration leaves them, in the transaction of *connection*."""
    # A table of that name is another program's: the creation fails instead of using it.
    metadata.create_all(connection, checkfirst=False)
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    context.stamp(scripts(), "head")


def upgrade(connection: Connection) -> None:
    """Run missing migrations in the transaction of *connection*."""
    script = scripts()

    def missing(revision: str, _context: object) -> object:
        return script._upgrade_revs("head", revision)

    with EnvironmentContext(Config(), script, fn=missing, destination_rev="head") as environment:
        environment.configure(
            connection=connection, version_table=VERSION_TABLE, transactional_ddl=True
        )
        with environment.begin_transaction():
            environment.run_migrations()
