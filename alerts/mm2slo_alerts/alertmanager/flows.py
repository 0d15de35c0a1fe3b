"""Who answers for a flow as a whole, which no objective says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.sli_counters import Sli

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.config.slo_config import ObjectiveConfig

_ALIVE: Final = (Sli.AVAILABILITY, Sli.DATA_FRESHNESS)
"""Indicators that a cause burns, the firmer one first. Who watches the order of records is not
who restarts MirrorMaker 2."""


def channels_of_flows(
    objectives: Iterable[ObjectiveConfig],
) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Patterns of flows, and the channel told of their causes; the first match holds.

    A flow that is not among them has the channel of everything.
    """
    known = tuple(objectives)
    found: dict[tuple[tuple[str, ...], str], None] = {}
    for sli in _ALIVE:
        for each in known:
            if each.sli is sli and each.channel is not None:
                found[each.flows, each.channel] = None
    return tuple(found)
