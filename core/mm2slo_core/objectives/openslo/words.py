"""Names that reading and writing share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.figures import shorthand
from mm2slo_core.objectives.ids import shortened, slug

if TYPE_CHECKING:
    from mm2slo_core.objectives.pairs import BurnPair

API_VERSION: Final = "openslo/v1"
SERVICE: Final = "Service"
SLI: Final = "SLI"
SLO: Final = "SLO"
POLICY: Final = "AlertPolicy"
CONDITION: Final = "AlertCondition"
TARGET: Final = "AlertNotificationTarget"
SOURCE: Final = "DataSource"
"""Read past: where our counters are, Prometheus knows."""
KINDS: Final = (SERVICE, SLI, SLO, POLICY, CONDITION, TARGET, SOURCE)
DEFAULT_TARGET: Final = "default"

WORST: Final = "mm2slo/worst"
OWNER: Final = "mm2slo/owner"
CHANNEL: Final = "mm2slo/channel"
ANNOTATIONS: Final = (WORST, OWNER, CHANNEL)


def policy_name(pair: BurnPair, window: float, channel: str) -> str:
    """One policy for each pair, window and channel."""
    parts = ("burn", pair.name, shorthand(window), slug(channel))
    return shortened("-".join(part for part in parts if part))


def threshold(pair: BurnPair, window: float) -> float:
    """The pair's burn rate, without the noise of binary fractions."""
    return float(f"{pair.factor(window):.12g}")
