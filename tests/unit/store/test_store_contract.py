"""The store's contract tests on SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from store_specs import SqliteBackEnd
from store_specs.audit_query_contract import AuditQueryContract
from store_specs.crash_contract import CrashContract
from store_specs.digest_claim_contract import DigestClaimContract
from store_specs.exclusion_contract import ExclusionContract
from store_specs.lease_contract import LeaseContract
from store_specs.multi_process_contract import MultiProcessContract
from store_specs.publication_contract import PublicationContract
from store_specs.sli_history_contract import (
    CounterStateContract,
    RetentionContract,
    SliHistoryContract,
)

if TYPE_CHECKING:
    from pathlib import Path

    from store_specs import BackEnd


@pytest.fixture
def back_end(tmp_path: Path) -> BackEnd:
    return SqliteBackEnd(str(tmp_path / "audit.db"))


class TestPublication(PublicationContract):
    """See the contract."""


class TestAuditQueries(AuditQueryContract):
    """See the contract."""


class TestLeases(LeaseContract):
    """See the contract."""


class TestExclusions(ExclusionContract):
    """See the contract."""


class TestMultiProcess(MultiProcessContract):
    """See the contract."""


class TestSliHistory(SliHistoryContract):
    """See the contract."""


class TestRetention(RetentionContract):
    """See the contract."""


class TestCounterStates(CounterStateContract):
    """See the contract."""


class TestDigestClaims(DigestClaimContract):
    """See the contract."""


class TestCrashes(CrashContract):
    """See the contract."""
