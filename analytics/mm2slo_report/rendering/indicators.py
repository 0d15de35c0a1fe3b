"""The indicators in words, for readers who meet them for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.figures import parse_shorthand
from mm2slo_core.sli import ALL, Sli

if TYPE_CHECKING:
    from mm2slo_core.sli import SliKey


class Wording(NamedTuple):
    """What a good event of an indicator is, and how it is counted."""

    description: str
    method: str
    """`events`, or `slices` of time."""
    unit: str


_CANARY: Final = "canary records"
_WORDINGS: Final[dict[Sli, Wording]] = {
    Sli.AVAILABILITY: Wording(
        "A canary record that was due arrives on the target before its deadline.",
        "events",
        _CANARY,
    ),
    Sli.LATENCY: Wording(
        "A canary record can be read on the target within the threshold.", "events", _CANARY
    ),
    Sli.DATA_FRESHNESS: Wording(
        "For a slice of time, a partition's lag in seconds stays within its objective.",
        "slices",
        "partition slices",
    ),
    Sli.COMPLETENESS: Wording(
        "A canary record that the flow went past is on the target.", "events", _CANARY
    ),
    Sli.UNIQUENESS: Wording(
        "A canary record on the target is there for the first time.", "events", _CANARY
    ),
    Sli.ORDER: Wording(
        "A canary record arrives after those that were sent before it.", "events", _CANARY
    ),
    Sli.AFFINITY: Wording(
        "A canary record is in the same partition as on the source.", "events", _CANARY
    ),
    Sli.CHECKPOINT_FRESHNESS: Wording(
        "For a slice of time, the newest checkpoint of a group that moves is young enough.",
        "slices",
        "group slices",
    ),
}


def wording(key: SliKey) -> Wording:
    """How the indicator is counted."""
    return _WORDINGS[key.sli]


def name(key: SliKey) -> str:
    """`availability`, `latency within 10s`, `data freshness (default)`."""
    words = key.sli.value.replace("_", " ")
    if key.tier == ALL:
        return words
    return f"{words} within {key.tier}" if key.sli is Sli.LATENCY else f"{words} ({key.tier})"


def threshold(key: SliKey) -> float | None:
    """Seconds; None where the indicator has a single threshold, which its name does not say."""
    if key.tier == ALL:
        return None
    found = parse_shorthand(key.tier)
    if found is not None:
        return found
    try:
        return float(key.tier.removesuffix("s"))
    except ValueError:
        return None
