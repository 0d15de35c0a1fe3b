"""What was paged a short while ago: alerts that reach nobody and keep its traces from being told.

A fault that is over stays within windows and holds for a while: a short window still counts its
bad events, an exporter that is back has not read everything yet. Inhibition by the page itself
ends with the page, and would let these traces out just when all is well again. These alerts look
back at Prometheus's own series `ALERTS`, so they exist only after a page has fired: nothing is
ever silenced that nobody was told of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_alerts import catching_up
from mm2slo_alerts.burn.pairs import ALERTS as BURNS
from mm2slo_alerts.model import PRODUCTION, AlertRule, Group, Links, Scale
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS, Thresholds
from mm2slo_core.objectives import BURN_PAIRS
from mm2slo_core.promql import duration, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

ALERT: Final = "MM2RecentlyPaged"
INTERVAL: Final = 30.0
"""Seconds between two evaluations; what a page silences must come at least so much later."""

_MINUTE: Final = 60.0
_ON_TOP: Final = 15 * _MINUTE
"""What a short window is followed by, and 5 minutes to spare: a page's `for` and `keep_firing_for`
of 5 minutes each, or the 5 minutes between two records of a ticket's window."""
_OF_FLOW: Final = ("flow", "source", "target")
_OF_OBJECTIVE: Final = (*_OF_FLOW, "sli", "tier")
_OF_CLUSTER: Final = ("cluster", "source", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """That the alert `of` fired within the last `within` seconds, kept apart by labels `by`."""

    of: str
    within: float
    by: tuple[str, ...]

    @property
    def labels(self) -> dict[str, str]:
        """What an inhibition knows it by; a scaled rule keeps the words of production."""
        return {"of": self.of, "within": duration(self.within)}


def _traces(of: str, by: tuple[str, ...], *pairs: str) -> Mapping[str, Memory]:
    """A memory for each of the *pairs* of windows: while its short window may hold *of*'s fault."""
    return {
        pair.name: Memory(of=of, within=pair.short + _ON_TOP, by=by)
        for pair in BURN_PAIRS
        if pair.name in pairs
    }


AFTER_BURN: Final[Mapping[str, Mapping[str, Memory]]] = {
    "fast": _traces(BURNS["fast"], _OF_OBJECTIVE, "steady", "slow", "creeping"),
    "steady": _traces(BURNS["steady"], _OF_OBJECTIVE, "slow", "creeping"),
    "slow": _traces(BURNS["slow"], _OF_OBJECTIVE, "creeping"),
}
"""Of a pair that told of an objective, by the slower ones that have nothing to add."""
AFTER_STOP: Final = _traces("MM2FlowStopped", _OF_FLOW, "steady", "slow", "creeping")
"""A stop that is over burns on within the short windows."""
AFTER_CATCHING_UP: Final = _traces(catching_up.ALERT, _OF_FLOW, "fast", "slow", "creeping")
"""What is late stays bad until the flow has caught up, and in the windows after that."""
AFTER_OUTAGE: Final = _traces("MM2ClusterUnreachable", _OF_CLUSTER, "slow", "creeping")
"""As after a stop, for the flows of the cluster; an alert of each role that it has. Pages are quiet
by MM2ClusterRecentlyUnreachable."""

JUST_AFTER_STOP: Final = Memory(of="MM2FlowStopped", within=5 * _MINUTE, by=_OF_FLOW)
"""Partitions and tasks take up their work one after the other."""
JUST_AFTER_EXPORTER: Final = Memory(of="MM2ExporterDown", within=10 * _MINUTE, by=())
"""A flow's series come back once its internal topics were read to their end."""
UNSEEN_BY_EXPORTER: Final = Memory(of="MM2ExporterDown", within=70 * _MINUTE, by=())
"""Coverage is judged over an hour, every 5 minutes: what was not seen stays in it so long."""
UNSEEN_IN_OUTAGE: Final = Memory(of="MM2ClusterUnreachable", within=70 * _MINUTE, by=_OF_CLUSTER)
"""As above."""
UNSEEN_BY_ABSENCE: Final = Memory(of="MM2FlowMetricsAbsent", within=70 * _MINUTE, by=_OF_FLOW)
"""As above."""

MEMORIES: Final = (
    *(memory for slower in AFTER_BURN.values() for memory in slower.values()),
    *AFTER_STOP.values(),
    *AFTER_CATCHING_UP.values(),
    *AFTER_OUTAGE.values(),
    JUST_AFTER_STOP,
    JUST_AFTER_EXPORTER,
    UNSEEN_BY_EXPORTER,
    UNSEEN_IN_OUTAGE,
    UNSEEN_BY_ABSENCE,
)


def groups(
    links: Links | None = None,
    scale: Scale = PRODUCTION,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> tuple[Group, ...]:
    """One group: flows that catch up, then a rule for each memory."""
    to, limits = links or Links(), thresholds.scaled(scale)
    memories = (_rule(memory, to, scale) for memory in MEMORIES)
    rules = (catching_up.rule(limits, to), *memories)
    return (Group(name="mm2slo-aftermath", interval=scale(INTERVAL), rules=rules),)


def _rule(memory: Memory, links: Links, scale: Scale) -> AlertRule:
    fired = f'ALERTS{{alertname={quoted(memory.of)}, alertstate="firing"}}'
    within = duration(scale(memory.within))
    by = f" by ({', '.join(memory.by)}) " if memory.by else ""
    return AlertRule(
        alert=ALERT,
        expr=f"group{by}(present_over_time({fired}[{within}]))",
        labels={"severity": "none", **memory.labels},
        annotations={
            "summary": f"{memory.of} fired within the last {duration(memory.within)}.",
            "description": "It keeps the traces of a fault that was told from being told again.",
            "impact": f"None of its own: {memory.of} told of the fault.",
            "first_step": f"Query ALERTS{{alertname={quoted(memory.of)}}}.",
            **links.annotations(ALERT, of_flow=bool(memory.by)),
        },
    )
