"""Ports, and the functions that a package exports, explain themselves."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODULES = sorted(ROOT.glob("[a-z]*/mm2slo_*/**/*.py"))


def is_port(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases)


def exports(module: Path) -> set[tuple[str, str]]:
    """Module and name of what a package's `__init__` imports from modules of its own."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return {
        (node.module, name.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for name in node.names
    }


def test_ports_and_exported_functions_have_docstrings() -> None:
    exported = set().union(*(exports(each) for each in MODULES if each.name == "__init__.py"))
    missing, checked = [], 0
    for module in MODULES:
        dotted = ".".join(module.relative_to(ROOT).with_suffix("").parts[1:])
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            public = isinstance(node, ast.FunctionDef) and (dotted, node.name) in exported
            if public or is_port(node):
                checked += 1
                if ast.get_docstring(node) is None:  # type: ignore[arg-type]
                    missing.append(f"{dotted}: {node.name}")  # type: ignore[attr-defined]
    assert missing == []
    assert checked > 50
