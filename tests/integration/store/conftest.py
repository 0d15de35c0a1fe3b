"""Fixtures of tests on PostgreSQL: a server for each module, an empty database for each test."""

from collections.abc import Iterator

import pytest
from store_specs import postgres_server
from store_specs.back_end import BackEnd
from store_specs.postgres_server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server.running() as started:
        yield started


@pytest.fixture
def back_end(server: Server) -> BackEnd:
    return server.fresh_store()
