"""The store's contract tests on SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from store_specs import SqliteBackEnd
from store_specs.store_contracts import *  # noqa: F403

if TYPE_CHECKING:
    from pathlib import Path

    from store_specs import BackEnd


@pytest.fixture
def back_end(tmp_path: Path) -> BackEnd:
    return SqliteBackEnd(str(tmp_path / "audit.db"))
