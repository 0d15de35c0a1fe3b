"""A panel that is empty in health names a fault, and some test on the lab plays that fault."""

from __future__ import annotations

import pytest
from dashed import ROOT
from shown import NAMED, named_in, shows


def test_each_fault_that_a_panel_names_is_played_once_on_the_lab() -> None:
    played = sorted(named_in(ROOT / "tests" / "integration" / "dashboards"))
    assert played == sorted(set(NAMED.values()))


def test_a_fault_that_no_panel_names_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="no panel names the fault 'rain'"):
        shows("rain")
