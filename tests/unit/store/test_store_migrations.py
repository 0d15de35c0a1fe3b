"""The migrations make what the code expects, and open runs them once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from mm2slo_store import Store, schema
from mm2slo_store.schema_upgrade import scripts

if TYPE_CHECKING:
    from pathlib import Path


def test_newest_migration_matches_the_revision_in_code() -> None:
    assert scripts().get_heads() == [schema.REVISION]


def test_migrated_store_matches_the_schema(tmp_path: Path) -> None:
    with Store.open(tmp_path / "audit.db"):
        pass
    engine = create_engine(f"sqlite:///{tmp_path / 'audit.db'}")
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": schema.VERSION_TABLE, "compare_type": True}
        )
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_open_current_store_does_not_import_alembic(tmp_path: Path) -> None:
    with Store.open(tmp_path / "audit.db"):
        pass
    before = (tmp_path / "audit.db").read_bytes()
    loaded = {name: sys.modules.pop(name) for name in list(sys.modules) if "alembic" in name}
    upgrading = sys.modules.pop("mm2slo_store.schema_upgrade")
    try:
        with Store.open(tmp_path / "audit.db"):
            pass
        assert not [name for name in sys.modules if "alembic" in name]
    finally:
        sys.modules.update(loaded | {"mm2slo_store.schema_upgrade": upgrading})
    assert (tmp_path / "audit.db").read_bytes() == before
