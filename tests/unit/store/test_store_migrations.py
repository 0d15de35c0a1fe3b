"""A new store has the newest tables; open runs the migrations that an older one lacks, once."""

import sys
from hashlib import sha256
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect
from sqlalchemy.schema import CreateIndex, CreateTable

from mm2slo_store import open_store, schema_upgrade, store_schema
from mm2slo_store.schema_upgrade import scripts
from mm2slo_store.store import Store

_TABLES = "c0225e19e204e48c"


def test_newest_migration_matches_the_revision_in_code() -> None:
    assert scripts().get_heads() == [store_schema.REVISION]


def test_changed_tables_need_a_migration() -> None:
    """Stores of a release keep its tables: change them in a migration, then this digest."""
    tables = store_schema.metadata.sorted_tables
    created = [str(CreateTable(each)) for each in tables]
    created += sorted(str(CreateIndex(index)) for each in tables for index in each.indexes)
    assert sha256("".join(created).encode()).hexdigest()[:16] == _TABLES


def test_open_older_store_runs_missing_migrations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path / "audit.db"):
        pass
    _write_revision(tmp_path, "0001", None, "raise AssertionError")
    added = "op.add_column('digests', sa.Column('n', sa.Integer))"
    _write_revision(tmp_path, "0002", "0001", added)
    config = Config()
    config.set_main_option("script_location", str(tmp_path))
    monkeypatch.setattr(schema_upgrade, "scripts", lambda: ScriptDirectory.from_config(config))
    monkeypatch.setattr(open_store, "REVISION", "0002")
    for _ in range(2):
        with Store.open(tmp_path / "audit.db") as store:
            assert store.digest_claim("2026-07", "#sre") is None
        engine = create_engine(f"sqlite:///{tmp_path / 'audit.db'}")
        with engine.connect() as connection:
            assert open_store._schema_revision(connection) == "0002"
            assert "n" in {each["name"] for each in inspect(connection).get_columns("digests")}
        engine.dispose()


def _write_revision(folder: Path, revision: str, after: str | None, change: str) -> None:
    versions = folder / "versions"
    versions.mkdir(exist_ok=True)
    (versions / f"v{revision}.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision = {revision!r}\ndown_revision = {after!r}\n"
        f"def upgrade():\n    {change}\n"
    )


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
