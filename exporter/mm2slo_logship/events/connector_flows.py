"""The flows of connectors, on Connect clusters whose connectors have names of their own (pure)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.mm2_config.mirror_setup import ConnectorKind

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEDICATED: Final = frozenset[str](ConnectorKind)
"""Names in dedicated mode, where they are the same for all flows."""


def connector_flows(connectors: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the flow of each connector from (connector, flow), without ambiguous names."""
    flows: dict[str, set[str]] = defaultdict(set)
    for connector, flow in connectors:
        flows[connector].add(flow)
    return {
        connector: min(found)
        for connector, found in flows.items()
        if len(found) == 1 and connector not in _DEDICATED
    }
