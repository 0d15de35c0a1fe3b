"""Faults that fill otherwise empty panels, and the tests that declare them."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from mm2slo_dashboards.dashboard_files import build_dashboards

PANEL_FAULTS: Final[Mapping[tuple[str, str], str]] = {
    (dashboard.uid.value, panel.title): panel.fills_on
    for dashboard in build_dashboards()
    for panel in dashboard.panels
    if panel.fills_on
}
"""The panels that a healthy flow leaves empty, by uid and title, with the fault that fills them."""


def covers_fault(fault: str) -> pytest.MarkDecorator:
    """Declare that a test injects *fault*; it gets the panels of that fault as `fault_panels`.

    The fault must be a literal in the test's file, so that `declared_faults` finds it.
    """
    panels = frozenset(key for key, named in PANEL_FAULTS.items() if named == fault)
    if not panels:
        raise ValueError(
            f"no panel fills on {fault!r}: expected one of {set(PANEL_FAULTS.values())}"
        )
    return pytest.mark.parametrize(
        "fault_panels", [pytest.param(panels, id=fault.replace(" ", "-"))]
    )


def declared_faults(folder: Path) -> Iterator[str]:
    """The faults that tests in *folder* declare, without importing the tests."""
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for each in node.decorator_list:
                    match each:
                        case ast.Call(
                            func=ast.Name(id="covers_fault"), args=[ast.Constant(value=fault)]
                        ):
                            yield str(fault)
