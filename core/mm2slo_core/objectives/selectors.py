"""Selectors of our counters in PromQL, as other tools' formats hold them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import SLI_EVENTS_TOTAL, SLI_GOOD_EVENTS_TOTAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.sli import SliKey
    from mm2slo_core.topology import Flow

GOOD: Final = SLI_GOOD_EVENTS_TOTAL.name
TOTAL: Final = SLI_EVENTS_TOTAL.name
_SELECTOR: Final = re.compile(r"\s*(?P<name>[A-Za-z_:][\w:]*)\s*\{(?P<matchers>.*)\}\s*", re.DOTALL)
_MATCHER: Final = re.compile(
    r"\s*(?P<label>[A-Za-z_]\w*)\s*=\s*\"(?P<value>[^\"\\]*)\"\s*(?:,|\Z)", re.ASCII
)


def labels_of(flow: Flow, key: SliKey) -> dict[str, str]:
    """What tells an indicator's series from all others."""
    return {"flow": flow.label, "sli": key.sli.value, "tier": key.tier}


def selector(name: str, labels: Mapping[str, str]) -> str:
    """`name{label="value"}`. Raises ValueError for a value that would need escaping."""
    for value in labels.values():
        if set(value) & set('"\\\n'):
            raise ValueError(f"label value {value!r}: expected text without quotes and backslashes")
    return f"{name}{{{','.join(f'{label}={quoted}' for label, quoted in _quoted(labels))}}}"


def parse_selector(text: str) -> tuple[str, dict[str, str]] | None:
    """Name and labels of a selector that has nothing but equalities; None for anything else."""
    match = _SELECTOR.fullmatch(text)
    if match is None:
        return None
    labels: dict[str, str] = {}
    rest = match["matchers"].strip()
    while rest:
        matcher = _MATCHER.match(rest)
        if matcher is None or matcher["label"] in labels:
            return None
        labels[matcher["label"]] = matcher["value"]
        rest = rest[matcher.end() :]
    return match["name"], labels


def _quoted(labels: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(label, f'"{value}"') for label, value in labels.items()]
