"""YAML as people write it: keys in their order, lists below their key, no anchors.

The same document always gives the same bytes.
"""

from __future__ import annotations

from typing import Any

import yaml


def dump_yaml(document: object, header: str = "") -> str:
    """*document* below *header*; strings of several lines stand as they are."""
    body = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True, indent=2
    )
    return f"{header}{body}"


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and never writes anchors."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
