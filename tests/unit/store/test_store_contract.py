"""What every back-end must do, on SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from store_specs import SqliteBackEnd
from store_specs.asking import AskingContract
from store_specs.digesting import DigestingContract
from store_specs.excluding import ExcludingContract
from store_specs.killing import KillingContract
from store_specs.leasing import LeasingContract
from store_specs.publishing import PublishingContract
from store_specs.recording import RecordingContract, RetainingContract, StatesContract
from store_specs.sharing import SharingContract

if TYPE_CHECKING:
    from pathlib import Path

    from store_specs import BackEnd


@pytest.fixture
def back_end(tmp_path: Path) -> BackEnd:
    return SqliteBackEnd(str(tmp_path / "audit.db"))


class TestPublishing(PublishingContract):
    """See the contract."""


class TestAsking(AskingContract):
    """See the contract."""


class TestLeasing(LeasingContract):
    """See the contract."""


class TestExcluding(ExcludingContract):
    """See the contract."""


class TestSharing(SharingContract):
    """See the contract."""


class TestRecording(RecordingContract):
    """See the contract."""


class TestRetaining(RetainingContract):
    """See the contract."""


class TestStates(StatesContract):
    """See the contract."""


class TestDigesting(DigestingContract):
    """See the contract."""


class TestKilling(KillingContract):
    """See the contract."""
