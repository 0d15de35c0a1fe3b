"""Modules are loaded without collecting, and collecting goes on as it was."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from mm2slo_cli.loading import loading

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_nothing_is_collected_while_modules_load() -> None:
    frozen = gc.get_freeze_count()
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > frozen


def test_a_collector_at_rest_stays_so_and_a_failure_wakes_it() -> None:
    gc.disable()
    with loading():
        pass
    assert not gc.isenabled()
    gc.enable()
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
