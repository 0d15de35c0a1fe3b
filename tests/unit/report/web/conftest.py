from collections.abc import Iterator
from pathlib import Path

import pytest
from report_service_fixture import NOW, ServiceFixture, sample_source, start_service

from mm2slo_store.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that is empty at the start of a module."""
    path: Path = tmp_path_factory.mktemp("store") / "results.db"
    with Store.open(path, clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def service(store: Store) -> ServiceFixture:
    """A service without tokens, as on loopback."""
    return start_service(store, sample_source())
