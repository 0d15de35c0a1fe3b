"""Invalid stores are refused in one sentence, and left unchanged."""

import importlib.util
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest
from store_specs.back_end import SqliteBackEnd
from store_specs.sample_results import judged, orders_outcome, run_of
from store_specs.stored_rows import stored_outcome

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.user_errors import MissingExtraError, UserError
from mm2slo_store.open_store import parse_address
from mm2slo_store.store import Store

PASSWORD = "s3cr3t-w0rd"


def refusal(address: str | Path) -> str:
    with pytest.raises(UserError) as refused, Store.open(address):
        pass
    assert refused.value.exit_code == 2
    message = str(refused.value)
    assert "\n" not in message
    return message


def filled(path: Path, units: int = 1) -> None:
    """A store with one run."""
    with SqliteBackEnd(str(path)).open() as store:
        outcomes = [orders_outcome(Window(0, 100), topic=f"t{number}") for number in range(units)]
        store.publish(run_of("r1", *map(judged, outcomes)))


def corrupt(path: Path) -> bytes:
    """Overwrite the pages after the header and the schema; returns the new content."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size // 2))
    return path.read_bytes()


def test_open_text_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    path.write_text("# notes\n", encoding="utf-8")
    assert refusal(path) == (
        f"the store {path} is not a SQLite database: give another path, or move the file away"
    )
    assert path.read_text(encoding="utf-8") == "# notes\n"
    assert list(tmp_path.iterdir()) == [path]


def test_open_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE bookmarks (url)")
    before = path.read_bytes()
    assert "is the database of another program (it has a table bookmarks," in refusal(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def _read_all(store: Store) -> None:
    for unit in store.units():
        stored_outcome(store, unit.run_id, unit.unit)


def test_open_corrupt_file_is_refused(tmp_path: Path) -> None:
    """Only a complete check finds the corrupt pages."""
    path = tmp_path / "audit.db"
    filled(path, units=40)
    content = corrupt(path)
    assert refusal(path) == (
        f"the store {path} is corrupt: restore it from a backup, or move it away and audit its "
        "windows again"
    )
    assert path.read_bytes() == content


def test_read_large_corrupt_file_raises_user_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_store.open_store.CHEAP_CHECK_BYTES", 1)
    path = tmp_path / "audit.db"
    filled(path, units=80)
    corrupt(path)
    with Store.open(path) as store, pytest.raises(UserError, match="is corrupt: restore it"):
        _read_all(store)


def test_open_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    filled(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    assert "is corrupt: restore it from a backup" in refusal(path)


def test_open_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        f"the store {tmp_path} is a folder: give the path of a file, such as audit.db"
    )


def test_open_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "audit.db"
    assert refusal(path) == (
        f"the store {path} cannot be created: its folder cannot be created (a file is in its "
        "place); "
        "give a path in a folder this user can write to"
    )


@contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """Run as a user who can only read *folder*; root can write anywhere."""
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
def test_open_in_read_only_folder_is_refused(tmp_path: Path, *, existing: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "audit.db"
    if existing:
        filled(path)
        path.chmod(0o444)
    with unprivileged(folder):
        message = refusal(path)
    folder.chmod(0o755)
    assert message.startswith(f"the store {path} cannot be ")
    assert message.endswith("grant this user write access to the file and its folder")


@pytest.mark.parametrize("address", ["mysql://me@db/x", "oracle+cx://me@db/x", "s3://bucket/x"])
def test_open_unknown_store_type_is_refused(address: str) -> None:
    kind = address.split("://", maxsplit=1)[0]
    assert refusal(address) == (
        f"unknown store type {kind!r}; "
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
        f"postgresql://me:p@{PASSWORD}@127.0.0.1:1/x",
        f"postgresql+psycopg://me:p@/?#{PASSWORD}@127.0.0.1:1/x",
        f"postgresql://me@corp:{PASSWORD}@127.0.0.1:1/x",
        f"postgresql://me:5432/{PASSWORD}@127.0.0.1:1/x",
    ],
)
def test_open_invalid_address_never_shows_the_password(address: str) -> None:
    with pytest.raises(UserError) as refused, Store.open(address):
        pass
    assert PASSWORD not in str(refused.value)


def test_open_unreachable_database_is_refused() -> None:
    message = refusal(f"postgresql://me:{PASSWORD}@127.0.0.1:1/slo")
    assert message.startswith("the store postgresql://me:***@127.0.0.1:1/slo failed: connection ")
    assert "Connection refused" in message
    assert message.endswith(
        "check that PostgreSQL is running there, and the user, password and database"
    )


@pytest.mark.parametrize("password", ["p@ss", "a/b?c#d", "p%40s:s", "50 %"])
def test_store_address_with_special_characters_has_the_whole_password(password: str) -> None:
    address = parse_address(f"postgresql://me@corp:{password}@db:5432/slo?sslmode=require")
    assert address.url.password == unquote(password)
    assert (address.url.username, address.url.host) == ("me@corp", "db")
    assert address.redacted == "postgresql://me%40corp:***@db:5432/slo"


@pytest.mark.parametrize("address", ["", "sqlite://", "sqlite:///:memory:", ":memory:"])
def test_open_address_without_file_is_refused(address: str) -> None:
    assert refusal(address).startswith("store address without a file")


def test_open_without_driver_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_psycopg(name: str) -> object:
        return None if name == "psycopg" else object()

    monkeypatch.setattr(importlib.util, "find_spec", without_psycopg)
    with pytest.raises(MissingExtraError) as missing, Store.open("postgresql://db/slo"):
        pass
    assert str(missing.value) == (
        "this command needs psycopg, which is not installed; run in a checkout of mm2slo, or with "
        "the path of its wheel in place of the dot: pip install '.[postgres]'"
    )


def test_write_to_locked_store_raises_user_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_store.open_store.BUSY_TIMEOUT_MS", 50)
    path = tmp_path / "audit.db"
    filled(path)
    with closing(sqlite3.connect(path)) as other, Store.open(path) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="is locked by another process"):
            store.acquire("eu", "orders", holder="r1")
        # Readers are not blocked.
        assert len(store.units()) == 1


def test_open_creates_folders_and_accepts_an_empty_file(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a" / "b" / "audit.db") as store:
        assert store.runs() == ()
    (tmp_path / "empty.db").touch()
    with Store.open(f"sqlite:///{tmp_path / 'empty.db'}") as store:
        assert store.runs() == ()
