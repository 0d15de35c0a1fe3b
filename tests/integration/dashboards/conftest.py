"""The shared lab, whole again after each test that breaks something of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_lab import Lab


@pytest.fixture
def broken(lab: Lab) -> Iterator[Lab]:
    """A lab whose MirrorMaker 2 and clusters the test stops; all run again afterwards."""
    yield lab
    for alias in ("us", "eu"):
        if not lab.cluster(alias).running:
            lab.cluster(alias).start()
    if not lab.mm2.running:
        lab.mm2.start()
    lab.mm2.wait_mirroring()
