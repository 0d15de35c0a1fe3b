"""The contract of the results store on a real PostgreSQL, and what can be wrong with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from store_specs import judged, orders_outcome, postgres, run_of
from store_specs.asking import AskingContract
from store_specs.digesting import DigestingContract
from store_specs.excluding import ExcludingContract
from store_specs.killing import KillingContract
from store_specs.leasing import LeasingContract
from store_specs.publishing import PublishingContract
from store_specs.recording import RecordingContract, RetainingContract, StatesContract
from store_specs.sharing import SharingContract

from mm2slo_core.audit.scope import Window
from mm2slo_core.errors import UserError
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store_specs import BackEnd
    from store_specs.postgres import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres.running() as started:
        yield started


@pytest.fixture
def back_end(server: Server) -> BackEnd:
    return server.fresh_store()


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


def refusal(address: str) -> str:
    with pytest.raises(UserError) as refused, Store.open(address):
        pass
    return str(refused.value)


def test_a_wrong_password_is_not_repeated(server: Server) -> None:
    said = refusal(server.url("postgres", "wr0ng"))
    assert said == (
        f"the store postgresql://slo:***@127.0.0.1:{server.port}/postgres failed: "
        "connection failed: "
        f'connection to server at "127.0.0.1", port {server.port} failed: FATAL: '
        'password authentication failed for user "slo"; '
        "check that PostgreSQL runs there, and the user, password and database"
    )


def test_a_database_that_does_not_exist_is_named(server: Server) -> None:
    assert 'database "absent" does not exist; check that' in refusal(server.url("absent"))


def test_a_store_may_share_its_database(back_end: BackEnd) -> None:
    with psycopg.connect(back_end.address) as connection:
        connection.execute("CREATE TABLE bookmarks (url text)")
    with back_end.open() as store:
        store.publish(run_of("r1", judged(orders_outcome(Window(0, 100)))))
        assert len(store.runs()) == 1


def test_a_user_who_may_not_make_tables_is_told(server: Server, back_end: BackEnd) -> None:
    with psycopg.connect(back_end.address) as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reads'")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    database = back_end.address.rsplit("/", 1)[1]
    said = refusal(f"postgresql://reader:reads@127.0.0.1:{server.port}/{database}")
    assert "permission denied for schema public" in said
    assert "reads" not in said
    assert "CREATE TABLE" not in said


def test_a_server_that_goes_away_is_told_and_loses_nothing(back_end: BackEnd) -> None:
    with back_end.open() as store:
        store.publish(run_of("r1", judged(orders_outcome(Window(0, 100)))))
        with psycopg.connect(back_end.address) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        # The next question finds the connection closed and opens another.
        assert [run.header.id for run in store.runs()] == ["r1"]
