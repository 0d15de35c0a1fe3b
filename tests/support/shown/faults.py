"""Faults that panels name, and the tests that have declared which one they play."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

import pytest

from mm2slo_dashboards.files import described

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

NAMED: Final[Mapping[tuple[str, str], str]] = {
    (board.identity.value, panel.title): panel.fills
    for board in described()
    for panel in board.panels
    if panel.fills
}
"""The panels that are empty in health, by uid and title, with the fault in which they fill."""


def shows(fault: str) -> pytest.MarkDecorator:
    """Declare that a test plays *fault*; it is given the panels that name it as `filled`.

    The fault stands in the test's file as a literal, so that `named_in` finds it.
    """
    panels = frozenset(key for key, named in NAMED.items() if named == fault)
    if not panels:
        raise ValueError(f"no panel names the fault {fault!r}: the named ones are {set(NAMED)}")
    return pytest.mark.parametrize("filled", [pytest.param(panels, id=fault.replace(" ", "-"))])


def named_in(folder: Path) -> Iterator[str]:
    """The faults that tests in *folder* declare, one by one, without importing the tests."""
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for each in node.decorator_list:
                    match each:
                        case ast.Call(func=ast.Name(id="shows"), args=[ast.Constant(value=fault)]):
                            yield str(fault)
