"""Inhibition rules: a cause inhibits its consequences; everything else is grouped.

Each cause is delivered itself. After its end, rules leave out what it explains
(`Thresholds.outage_memory`): an inhibition would need a cause that never resolves in time.
Alertmanager treats a missing label as an empty one. Each source
therefore requires the labels in `equal` to be non-empty: otherwise a rule about flows would inhibit
alerts without a flow. Targets are alerts of mm2slo, since others may have the same labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_alerts.burn.pair_alerts import ALERT as BURN
from mm2slo_core.promql import equal, matching, unequal, unmatching

if TYPE_CHECKING:
    from mm2slo_core.promql import Matcher

Alerts = Sequence["Matcher"]


class Inhibition(NamedTuple):
    """An alert that matches `source` inhibits those of `target` with equal labels `by`."""

    why: str
    source: Alerts
    target: Alerts
    by: tuple[str, ...] = ()


OURS: Final = matching("alertname", "MM2.+")
_UNREACHABLE: Final = equal("alertname", "MM2ClusterUnreachable")
_LOSS: Final = "MM2RecordsLost|MM2RetentionHeadroomLow"
"""Loss does not end with the outage."""
_STOP_EFFECTS: Final = (
    f"{BURN}|MM2ErrorBudgetExhausted|MM2CheckpointStalled|MM2FailoverNotReady|MM2TaskFailed"
)

INHIBITIONS: Final = (
    *(
        Inhibition(
            f"The {role} of the flow does not answer.",
            (_UNREACHABLE, unequal(role, "")),
            (OURS, unmatching("alertname", _LOSS), unequal("flow", "")),
            (role,),
        )
        for role in ("source", "target")
    ),
    Inhibition(
        "Nothing can be collected from an unreachable cluster.",
        (_UNREACHABLE, unequal("cluster", "")),
        (equal("alertname", "MM2CollectionFailing"),),
        ("cluster",),
    ),
    Inhibition(
        "A stopped flow burns budgets, and its groups resume from replicated data.",
        (equal("alertname", "MM2FlowStopped"), unequal("flow", "")),
        (matching("alertname", _STOP_EFFECTS),),
        ("flow",),
    ),
    Inhibition(
        "Without an exporter there are no metrics.",
        (equal("alertname", "MM2ExporterDown"),),
        (equal("alertname", "MM2FlowMetricsAbsent"),),
    ),
)
