"""The shared lab, restored after each test that injects a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_lab import Lab


@pytest.fixture
def faulty_lab(lab: Lab) -> Iterator[Lab]:
    """A lab whose MirrorMaker 2 and clusters the test may stop; restarted afterwards."""
    yield lab
    for alias in ("us", "eu"):
        if not lab.cluster(alias).running:
            lab.cluster(alias).start()
    if not lab.mm2.running:
        lab.mm2.start()
    lab.mm2.wait_mirroring()
