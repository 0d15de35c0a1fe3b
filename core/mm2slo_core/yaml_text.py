"""Readable YAML: keys in insertion order, indented lists, no anchors; deterministic output."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

# YAML 1.2 reads these as numbers, PyYAML's YAML 1.1 does not, and so would not quote them.
_NUMBER: Final = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0o[0-7]+", re.ASCII)


def dump_yaml(document: object, header: str = "") -> str:
    """Return *header* and *document* as YAML; multi-line strings are literal blocks."""
    body = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True, indent=2
    )
    return f"{header}{body}"


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key and writes no anchors."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if _NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
