"""Every fault that fills an otherwise empty panel is injected by a lab test."""

import pytest
from generated_dashboards import ROOT
from lab_dashboards import PANEL_FAULTS, covers_fault, declared_faults


def test_each_panel_fault_has_exactly_one_lab_test() -> None:
    declared = sorted(declared_faults(ROOT / "tests" / "integration" / "dashboards"))
    assert declared == sorted(set(PANEL_FAULTS.values()))


def test_covers_fault_unknown_fault_raises_value_error() -> None:
    with pytest.raises(ValueError, match="no panel fills on 'rain'"):
        covers_fault("rain")
