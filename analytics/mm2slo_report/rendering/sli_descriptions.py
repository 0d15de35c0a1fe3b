"""Descriptions of the SLIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.quantity_text import parse_shorthand
from mm2slo_core.sli_counters import ALL, Sli

if TYPE_CHECKING:
    from mm2slo_core.sli_counters import SliKey


class SliDescription(NamedTuple):
    """What a good event is, and how events are counted."""

    description: str
    method: str
    """`events`, or `slices` (of time)."""
    unit: str


_CANARY: Final = "canaries"
_DESCRIPTIONS: Final[dict[Sli, SliDescription]] = {
    Sli.AVAILABILITY: SliDescription(
        "A canary arrives on the target before its deadline.",
        "events",
        _CANARY,
    ),
    Sli.LATENCY: SliDescription(
        "A canary is readable on the target within the threshold.", "events", _CANARY
    ),
    Sli.DATA_FRESHNESS: SliDescription(
        "During a time slice, a partition's lag in seconds stays within its threshold.",
        "slices",
        "partition slices",
    ),
    Sli.COMPLETENESS: SliDescription(
        "A canary that the flow's position has passed is on the target.", "events", _CANARY
    ),
    Sli.UNIQUENESS: SliDescription("A canary arrives on the target only once.", "events", _CANARY),
    Sli.ORDER: SliDescription(
        "A canary arrives after all canaries sent before it.", "events", _CANARY
    ),
    Sli.AFFINITY: SliDescription(
        "A canary is in the same partition as on the source.", "events", _CANARY
    ),
    Sli.CHECKPOINT_FRESHNESS: SliDescription(
        "During a time slice, the newest checkpoint of an active group is recent enough.",
        "slices",
        "group slices",
    ),
}


def sli_description(key: SliKey) -> SliDescription:
    return _DESCRIPTIONS[key.sli]


def name(key: SliKey) -> str:
    """`availability`, `latency within 10s`, `data freshness (default)`."""
    text = key.sli.value.replace("_", " ")
    if key.tier == ALL:
        return text
    return f"{text} within {key.tier}" if key.sli is Sli.LATENCY else f"{text} ({key.tier})"


def threshold(key: SliKey) -> float | None:
    """Seconds from the tier; None for an SLI without tiers."""
    if key.tier == ALL:
        return None
    found = parse_shorthand(key.tier)
    if found is not None:
        return found
    try:
        return float(key.tier.removesuffix("s"))
    except ValueError:
        return None
