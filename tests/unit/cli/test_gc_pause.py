"""Garbage collection while modules are imported."""

import gc
from collections.abc import Iterator

import pytest

from mm2slo_cli.gc_pause import paused_gc


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_paused_gc_disables_and_freezes() -> None:
    frozen = gc.get_freeze_count()
    with paused_gc():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > frozen


def test_paused_gc_restores_previous_state_also_after_errors() -> None:
    gc.disable()
    with paused_gc():
        pass
    assert not gc.isenabled()
    gc.enable()
    with pytest.raises(ImportError), paused_gc():
        raise ImportError
    assert gc.isenabled()
