"""Channels of alerts about a flow as a whole, which belong to no objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.sli_counters import Sli

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.config.slo_config import ObjectiveConfig

_CAUSE_SLIS: Final = (Sli.AVAILABILITY, Sli.DATA_FRESHNESS)
"""Indicators whose channel also gets the causes, the first one preferred. The team that watches the
order of records is not the one that restarts MirrorMaker 2."""


def flow_channels(
    objectives: Iterable[ObjectiveConfig],
) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return patterns of flows with the channel of their causes; the first match applies.

    Flows that match none use `slo.channel`.
    """
    known = tuple(objectives)
    found: dict[tuple[tuple[str, ...], str], None] = {}
    for sli in _CAUSE_SLIS:
        for each in known:
            if each.sli is sli and each.channel is not None:
                found[each.flows, each.channel] = None
    return tuple(found)
