"""The store's contract tests on SQLite."""

from pathlib import Path

import pytest
from store_specs.back_end import BackEnd, SqliteBackEnd
from store_specs.store_contracts import *  # noqa: F403


@pytest.fixture
def back_end(tmp_path: Path) -> BackEnd:
    return SqliteBackEnd(str(tmp_path / "audit.db"))
