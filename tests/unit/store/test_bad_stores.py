"""What cannot be a store is refused in one sentence, and is left as it was."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from store_specs import SqliteBackEnd, judged, orders_outcome, run_of

from mm2slo_core.audit.scope import Window
from mm2slo_core.errors import MissingExtraError, UserError
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD = "s3cr3t-w0rd"


def refusal(address: str | Path) -> str:
    with pytest.raises(UserError) as refused, Store.open(address):
        pass
    assert refused.value.exit_code == 2
    said = str(refused.value)
    assert "\n" not in said
    return said


def filled(path: Path, units: int = 1) -> None:
    """A store with one run."""
    with SqliteBackEnd(str(path)).open() as store:
        outcomes = [orders_outcome(Window(0, 100), topic=f"t{number}") for number in range(units)]
        store.publish(run_of("r1", *map(judged, outcomes)))


def spoilt(path: Path) -> bytes:
    """Overwrite the pages behind the header and the schema; gives what is there now."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size // 2))
    return path.read_bytes()


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    path.write_text("# notes\n", encoding="utf-8")
    assert refusal(path) == (
        f"the store {path} is not a SQLite database: give another path, or move the file away"
    )
    assert path.read_text(encoding="utf-8") == "# notes\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE bookmarks (url)")
    before = path.read_bytes()
    assert "is the database of another program (it holds bookmarks," in refusal(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def _read_all(store: Store) -> None:
    for unit in store.units():
        store.outcome(unit.run_id, unit.unit)


def test_a_corrupt_file(tmp_path: Path) -> None:
    """What opening reads is sound; only a look at all of it finds the rest."""
    path = tmp_path / "audit.db"
    filled(path, units=40)
    content = spoilt(path)
    assert refusal(path) == (
        f"the store {path} is corrupt: restore it from a copy, or move it away and audit its "
        "windows again"
    )
    assert path.read_bytes() == content


def test_a_corrupt_file_too_large_to_check_is_found_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_store.sqlite_file.CHEAP_CHECK_BYTES", 1)
    path = tmp_path / "audit.db"
    filled(path, units=80)
    spoilt(path)
    with Store.open(path) as store, pytest.raises(UserError, match="is corrupt: restore it"):
        _read_all(store)


def test_a_file_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    filled(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    assert "is corrupt: restore it from a copy" in refusal(path)


def test_a_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        f"the store {tmp_path} is a folder: give the path of a file, as in audit.db"
    )


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "audit.db"
    assert refusal(path) == (
        f"the store {path} cannot be made: its folder cannot be created (a file is in its "
        "place); "
        "give a path in a folder this user may write to"
    )


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Be a user who may look into *folder* and no more; root may write anywhere."""
    folder.chmod(0o555)
    if os.geteuid() != 0:
        yield
        return
    above = {each: each.stat().st_mode for each in folder.parents}
    for each, mode in above.items():
        each.chmod(mode | 0o011)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for each, mode in above.items():
            each.chmod(mode)


@pytest.mark.parametrize("existing", [False, True])
def test_a_folder_that_this_user_may_not_write(tmp_path: Path, *, existing: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "audit.db"
    if existing:
        filled(path)
        path.chmod(0o444)
    with as_nobody(folder):
        said = refusal(path)
    folder.chmod(0o755)
    assert said.startswith(f"the store {path} cannot be ")
    assert said.endswith("give this user the right to write the file and its folder")


@pytest.mark.parametrize("address", ["mysql://me@db/x", "oracle+cx://me@db/x", "s3://bucket/x"])
def test_an_unknown_kind(address: str) -> None:
    kind = address.split("://", maxsplit=1)[0]
    assert refusal(address) == (
        f"there is no store of the kind {kind}: "
        "expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"
    )


@pytest.mark.parametrize(
    "address",
    [
        f"mysql://me:{PASSWORD}@db/x",
        f"postgresql://me:{PASSWORD}@db:port/x",
        f"postgresql://me:{PASSWORD}@127.0.0.1:1/x",
        f"postgresql://me@127.0.0.1:1/x?password={PASSWORD}",
        f"://me:{PASSWORD}@db/x",
        f"sqlite://me:{PASSWORD}@db/x",
    ],
)
def test_no_password_is_shown(address: str) -> None:
    with pytest.raises(UserError) as refused, Store.open(address):
        pass
    assert PASSWORD not in str(refused.value)


def test_a_database_that_cannot_be_reached() -> None:
    said = refusal(f"postgresql://me:{PASSWORD}@127.0.0.1:1/slo")
    assert said.startswith("the store postgresql://me:***@127.0.0.1:1/slo failed: connection ")
    assert "Connection refused" in said
    assert said.endswith("check that PostgreSQL runs there, and the user, password and database")


@pytest.mark.parametrize("address", ["", "sqlite://", "sqlite:///:memory:", ":memory:"])
def test_an_address_of_no_file(address: str) -> None:
    assert refusal(address).startswith("the store's address names no file")


def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_psycopg(name: str) -> object:
        return None if name == "psycopg" else object()

    monkeypatch.setattr(importlib.util, "find_spec", without_psycopg)
    with pytest.raises(MissingExtraError) as missing, Store.open("postgresql://db/slo"):
        pass
    assert str(missing.value) == (
        "this command needs psycopg, which is not installed; run: pip install 'mm2slo[postgres]'"
    )


def test_a_store_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mm2slo_store.engine.BUSY_TIMEOUT_MS", 50)
    path = tmp_path / "audit.db"
    filled(path)
    with closing(sqlite3.connect(path)) as other, Store.open(path) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="is being written to by another process"):
            store.acquire("eu", "orders", holder="r1")
        # Who only reads is not held up.
        assert len(store.units()) == 1


def test_folders_are_made_and_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a" / "b" / "audit.db") as store:
        assert store.runs() == ()
    (tmp_path / "empty.db").touch()
    with Store.open(f"sqlite:///{tmp_path / 'empty.db'}") as store:
        assert store.runs() == ()
