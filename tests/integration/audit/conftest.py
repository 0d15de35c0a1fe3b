"""One story for all tests of the audit on the shared lab."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from audited import Told, tell

if TYPE_CHECKING:
    from mm2slo_lab import Lab


@pytest.fixture(scope="session")
def told(lab: Lab) -> Told:
    """The story, told once; MirrorMaker 2 runs as before when it is over."""
    return tell(lab, f"audited-{os.getpid()}")
