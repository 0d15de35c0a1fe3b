"""What was paged a short while ago: alerts that reach nobody and keep its traces from paging.

A fault that is over stays within windows and holds for a while: a short window still counts its
bad events, an exporter that is back has not read everything yet. Inhibition by the page itself
ends with the page, and would let these traces out just when all is well again. These alerts look
back at Prometheus's own series `ALERTS`, so they exist only after a page has fired: nothing is
ever silenced that nobody was told of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mm2slo_alerts.model import PRODUCTION, AlertRule, Group, Links, Scale
from mm2slo_core.promql import duration, quoted

ALERT: Final = "MM2RecentlyPaged"
INTERVAL: Final = 30.0
"""Seconds between two evaluations; what a page silences must come at least so much later."""

_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """That the page `of` fired within the last `within` seconds, kept apart by labels `by`."""

    of: str
    within: float
    by: tuple[str, ...]

    @property
    def labels(self) -> dict[str, str]:
        """What an inhibition knows it by; a scaled rule keeps the words of production."""
        return {"of": self.of, "within": duration(self.within)}


_FLOW: Final = ("flow", "source", "target")

AFTER_BURN: Final = Memory(
    of="MM2ErrorBudgetBurnFast", within=45 * _MINUTE, by=(*_FLOW, "sli", "tier")
)
"""The steady pair's short window (30 minutes), its `for` and `keep_firing_for`, and 5 to spare."""
AFTER_STOP: Final = Memory(of="MM2FlowStopped", within=45 * _MINUTE, by=_FLOW)
"""As above: a stop that is over burns on within the short windows."""
JUST_AFTER_STOP: Final = Memory(of="MM2FlowStopped", within=5 * _MINUTE, by=_FLOW)
"""Partitions and tasks take up their work one after the other."""
JUST_AFTER_EXPORTER: Final = Memory(of="MM2ExporterDown", within=10 * _MINUTE, by=())
"""A flow's series come back once its internal topics were read to their end."""
AFTER_EXPORTER: Final = Memory(of="MM2ExporterDown", within=70 * _MINUTE, by=())
"""Coverage is judged over an hour, every 5 minutes: what was not seen stays in it so long."""
AFTER_OUTAGE: Final = Memory(
    of="MM2ClusterUnreachable", within=70 * _MINUTE, by=("cluster", "source", "target")
)
"""As above; an alert of each role of the cluster."""
AFTER_ABSENCE: Final = Memory(of="MM2FlowMetricsAbsent", within=70 * _MINUTE, by=_FLOW)
"""As above."""

MEMORIES: Final = (
    AFTER_BURN,
    AFTER_STOP,
    JUST_AFTER_STOP,
    JUST_AFTER_EXPORTER,
    AFTER_EXPORTER,
    AFTER_OUTAGE,
    AFTER_ABSENCE,
)


def groups(links: Links | None = None, scale: Scale = PRODUCTION) -> tuple[Group, ...]:
    """One group with a rule for each memory."""
    rules = tuple(_rule(memory, links or Links(), scale) for memory in MEMORIES)
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
            "description": "It keeps the traces of a fault that was paged from paging again.",
            "impact": f"None of its own: {memory.of} told of the fault.",
            "first_step": f"Query ALERTS{{alertname={quoted(memory.of)}}}.",
            **links.annotations(ALERT, of_flow=bool(memory.by)),
        },
    )
