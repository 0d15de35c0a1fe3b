"""Ports, and the functions that other packages import, explain themselves."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODULES = sorted(ROOT.glob("[a-z]*/mm2slo_*/**/*.py"))


def is_port(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases)


def imports_of_other_packages(module: Path) -> set[tuple[str, str]]:
    """Module and name of what *module* imports from the project's other packages."""
    package = module.relative_to(ROOT).parts[1]
    return {
        (node.module, name.name)
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module is not None
        if node.module.startswith("mm2slo_") and node.module.split(".")[0] != package
        for name in node.names
    }


def test_ports_and_functions_for_other_packages_have_docstrings() -> None:
    exported = set().union(*map(imports_of_other_packages, MODULES))
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
