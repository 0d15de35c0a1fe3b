"""Contracts of the results store that depend on the database, on PostgreSQL, and its errors.

The long suite runs all others there (`test_whole_contract`).
"""

from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool
from store_specs.back_end import BackEnd
from store_specs.digest_claim_contract import DigestClaimContract as TestDigestClaim  # noqa: F401
from store_specs.exclusion_contract import UPGRADE
from store_specs.exclusion_contract import ExclusionContract as TestExclusion  # noqa: F401
from store_specs.lease_contract import LeaseContract as TestLease  # noqa: F401
from store_specs.postgres_server import Server
from store_specs.publication_contract import PublicationContract as TestPublication  # noqa: F401
from store_specs.sample_results import judged, orders_outcome, run_of

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.user_errors import UserError
from mm2slo_store.open_store import write_transaction
from mm2slo_store.store import Store


def open_error(address: str) -> str:
    with pytest.raises(UserError) as refused, Store.open(address):
        pass
    return str(refused.value)


def test_wrong_password_is_not_printed(server: Server) -> None:
    message = open_error(server.url("postgres", "wr0ng"))
    assert message == (
        f"the store postgresql://slo:***@127.0.0.1:{server.port}/postgres failed: "
        "connection failed: "
        f'connection to server at "127.0.0.1", port {server.port} failed: FATAL: '
        'password authentication failed for user "slo"; '
        "check that PostgreSQL is running there, and the user, password and database"
    )


def test_missing_database_is_named(server: Server) -> None:
    assert 'database "absent" does not exist; check that' in open_error(server.url("absent"))


def test_store_shares_database(back_end: BackEnd) -> None:
    with psycopg.connect(back_end.address) as connection:
        connection.execute("CREATE TABLE bookmarks (url text)")
    with back_end.open() as store:
        store.publish(run_of("r1", judged(orders_outcome(Window(0, 100)))))
        assert len(store.runs()) == 1


def test_open_without_create_permission_is_refused(server: Server, back_end: BackEnd) -> None:
    with psycopg.connect(back_end.address) as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reads'")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    database = back_end.address.rsplit("/", 1)[1]
    message = open_error(f"postgresql://reader:reads@127.0.0.1:{server.port}/{database}")
    assert "permission denied for schema public" in message
    assert "reads" not in message
    assert "CREATE TABLE" not in message


def test_write_to_locked_store_raises_user_error(
    back_end: BackEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_store.open_store.BUSY_TIMEOUT_MS", 50)
    other = create_engine(back_end.url, poolclass=NullPool)
    with back_end.open() as store, write_transaction(other):
        with pytest.raises(UserError, match="is locked by another process"):
            store.acquire("eu", "orders", holder="r1")
        # Readers are not blocked.
        assert store.units() == ()


def test_client_encoding_of_environment_has_no_effect(
    back_end: BackEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with back_end.open() as store:
        store.add_exclusion(UPGRADE, flows=())
        assert store.exclusions() == (UPGRADE,)


def test_character_without_equivalent_in_database_raises_user_error(server: Server) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with Store.open(server.url("latin")) as store:
        with pytest.raises(UserError, match='has no equivalent in encoding "LATIN1"; the trans'):
            store.add_exclusion(UPGRADE, flows=())
        latin = replace(UPGRADE, reason="\xdcberlauf")
        store.add_exclusion(latin, flows=())
        assert store.exclusions() == (latin,)


def test_server_restart_raises_user_error_and_loses_nothing(back_end: BackEnd) -> None:
    with back_end.open() as store:
        store.publish(run_of("r1", judged(orders_outcome(Window(0, 100)))))
        with psycopg.connect(back_end.address) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        # The next query finds the connection closed and opens a new one.
        assert [run.header.id for run in store.runs()] == ["r1"]
