"""Inhibition rules: one fault is one page.

Alertmanager treats a missing label as an empty one. Each source therefore requires the labels in
`equal` to be non-empty: otherwise a rule about flows would inhibit alerts without a flow. No source
matches its own target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mm2slo_alerts import catching_up, recent_alert
from mm2slo_alerts.burn.pair_alerts import ALERTS as BURNS
from mm2slo_alerts.causes.cluster_causes import IN_WINDOWS, RECOVERY, WITHIN
from mm2slo_core.promql import Matcher, equal, matching, unequal, unmatching

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_alerts.recent_alert import RecentAlert

Alerts = Sequence[Matcher]


class Inhibition(NamedTuple):
    """An alert that matches `source` inhibits those of `target` with equal labels `by`."""

    why: str
    source: Alerts
    target: Alerts
    by: tuple[str, ...] = ()


_UNREACHABLE_NOW: Final = "MM2ClusterUnreachable"
_RECENTLY_UNREACHABLE: Final = "MM2ClusterRecentlyUnreachable"
_UNREACHABLE: Final = f"{_UNREACHABLE_NOW}|{_RECENTLY_UNREACHABLE}"
# Loss does not end with the outage.
_LOSS: Final = "MM2RecordsLost|MM2RetentionHeadroomLow"
_NEVER_INHIBITED: Final = f"{_UNREACHABLE}|{_LOSS}|{recent_alert.ALERT}|{catching_up.ALERT}"
_STOP_BURNS: Final = "availability|latency|data_freshness|checkpoint_freshness"
_STOP_CAUSES: Final = "MM2PartitionStalled|MM2ConnectorFailed|MM2TaskFailed|MM2TransactionStuck"
# Consumer groups resume from replicated data.
_STOP_GROUPS: Final = "MM2CheckpointStalled|MM2FailoverNotReady"
_COVERAGE: Final = "MM2SLOCoverageLow"
_UNSCRAPED: Final = f"MM2FlowMetricsAbsent|{_COVERAGE}|MM2CollectionFailing"
# Alerts that still see an outage after its end.
_BUDGETS: Final = f"{'|'.join(BURNS.values())}|MM2ErrorBudgetExhausted"
_AFTER_OUTAGE: Final = f"{_BUDGETS}|{_COVERAGE}|{_STOP_GROUPS}"
_PAGES: Final = f"{BURNS['fast']}|{BURNS['steady']}"
# A budget stays exhausted for weeks: it alerts once the last bad event is counted.
_EXHAUSTED: Final = "MM2ErrorBudgetExhausted"
_ALERTS_BY_PAIR: Final = {
    "steady": BURNS["steady"],
    "slow": f"{BURNS['slow']}|{_EXHAUSTED}",
    "creeping": BURNS["creeping"],
}
_OBJECTIVE_LABELS: Final = ("flow", "sli", "tier")
_HAS_OBJECTIVE: Final = tuple(unequal(label, "") for label in _OBJECTIVE_LABELS)


def _alertname(names: str) -> Matcher:
    return matching("alertname", names) if "|" in names else equal("alertname", names)


def _recently_unreachable(within: str) -> Alerts:
    return (_alertname(_RECENTLY_UNREACHABLE), equal(WITHIN, within))


def _recently_fired(recent: RecentAlert, by: tuple[str, ...] = ()) -> Alerts:
    """MM2RecentlyPaged of *recent*, with non-empty labels *by*."""
    return (
        equal("alertname", recent_alert.ALERT),
        *(equal(name, value) for name, value in recent.labels.items()),
        *(unequal(label, "") for label in by),
    )


def _burn_alerts(names: str) -> Alerts:
    """Alerts *names* about the indicators that burn while a flow does not replicate."""
    return (_alertname(names), matching("sli", _STOP_BURNS))


def _tickets_after(
    fault: str, recent_alerts: Mapping[str, RecentAlert], by: tuple[str, ...]
) -> Iterator[Inhibition]:
    """Inhibit tickets about budgets that *fault* burned while the windows hold it."""
    for pair in ("slow", "creeping"):
        yield Inhibition(
            f"The short window of the {pair} pair still holds the {fault}.",
            _recently_fired(recent_alerts[pair], by),
            _burn_alerts(_ALERTS_BY_PAIR[pair]),
            by,
        )


INHIBITIONS: Final = (
    *(
        Inhibition(
            f"The {role} of the flow {why}.",
            (*source, unequal(role, "")),
            (unequal("flow", ""), unmatching("alertname", _NEVER_INHIBITED)),
            (role,),
        )
        for why, source in (
            ("is unreachable, which explains every other alert", (_alertname(_UNREACHABLE_NOW),)),
            ("was unreachable: the flow needs time to resume", _recently_unreachable(RECOVERY)),
        )
        for role in ("source", "target")
    ),
    *(
        Inhibition(
            f"Windows still hold an outage of the {role}.",
            (*_recently_unreachable(IN_WINDOWS), unequal(role, "")),
            (unequal("flow", ""), _alertname(_AFTER_OUTAGE)),
            (role,),
        )
        for role in ("source", "target")
    ),
    Inhibition(
        "Collection from an unreachable cluster fails.",
        (_alertname(_UNREACHABLE), unequal("cluster", "")),
        (_alertname("MM2CollectionFailing"),),
        ("cluster",),
    ),
    Inhibition(
        "Without an exporter there are no metrics.",
        (_alertname("MM2ExporterDown"),),
        (_alertname(_UNSCRAPED),),
    ),
    Inhibition(
        "A restarted exporter has not read its flows to their end yet.",
        _recently_fired(recent_alert.JUST_AFTER_EXPORTER),
        (_alertname(_UNSCRAPED),),
    ),
    Inhibition(
        "The hour of coverage still holds the time without an exporter.",
        _recently_fired(recent_alert.UNSEEN_BY_EXPORTER),
        (_alertname(_COVERAGE),),
    ),
    Inhibition(
        "The hour of coverage still holds the time without metrics.",
        _recently_fired(recent_alert.UNSEEN_BY_ABSENCE, ("flow",)),
        (_alertname(_COVERAGE),),
        ("flow",),
    ),
    *(
        Inhibition(
            f"The hour of coverage still holds an outage of the {role}.",
            _recently_fired(recent_alert.UNSEEN_IN_OUTAGE, (role,)),
            (_alertname(_COVERAGE),),
            (role,),
        )
        for role in ("source", "target")
    ),
    Inhibition(
        "A flow without metrics has no coverage.",
        (_alertname("MM2FlowMetricsAbsent"), unequal("flow", "")),
        (_alertname(_COVERAGE),),
        ("flow",),
    ),
    Inhibition(
        "A stopped flow burns every budget that depends on arriving records.",
        _recently_fired(recent_alert.AFTER_STOP["steady"], ("flow",)),
        _burn_alerts(_PAGES),
        ("flow",),
    ),
    Inhibition(
        "A flow that works off its backlog burns them until it has caught up.",
        _recently_fired(recent_alert.AFTER_CATCHING_UP["fast"], ("flow",)),
        _burn_alerts(_PAGES),
        ("flow",),
    ),
    *(
        Inhibition(
            "Groups resume from replicated data.",
            _recently_fired(recent, ("flow",)),
            (_alertname(_STOP_GROUPS),),
            ("flow",),
        )
        for recent in (recent_alert.AFTER_STOP["steady"], recent_alert.AFTER_CATCHING_UP["fast"])
    ),
    *_tickets_after("stop", recent_alert.AFTER_STOP, ("flow",)),
    *_tickets_after("backlog", recent_alert.AFTER_CATCHING_UP, ("flow",)),
    *(
        inhibition
        for role in ("source", "target")
        for inhibition in _tickets_after(
            f"outage of the {role}", recent_alert.AFTER_OUTAGE, (role,)
        )
    ),
    Inhibition(
        "All parts of a stopped flow are stopped.",
        _recently_fired(recent_alert.JUST_AFTER_STOP, ("flow",)),
        (_alertname(_STOP_CAUSES),),
        ("flow",),
    ),
    Inhibition(
        "The fast pair reports the objective.",
        (_alertname(BURNS["fast"]), *_HAS_OBJECTIVE),
        (_alertname("|".join(BURNS[pair] for pair in ("steady", "slow", "creeping"))),),
        _OBJECTIVE_LABELS,
    ),
    *(
        Inhibition(
            f"The short window of the {slower} pair still holds what the {faster} pair reported.",
            _recently_fired(recent, _OBJECTIVE_LABELS),
            (_alertname(_ALERTS_BY_PAIR[slower]),),
            _OBJECTIVE_LABELS,
        )
        for faster, recent_alerts in recent_alert.AFTER_BURN.items()
        for slower, recent in recent_alerts.items()
    ),
    Inhibition(
        "The steady pair reports the objective before the slower ones.",
        (_alertname(BURNS["steady"]), *_HAS_OBJECTIVE),
        (_alertname(f"{BURNS['slow']}|{BURNS['creeping']}"),),
        _OBJECTIVE_LABELS,
    ),
    Inhibition(
        "The slow pair reports the objective before the creeping one.",
        (_alertname(BURNS["slow"]), *_HAS_OBJECTIVE),
        (_alertname(BURNS["creeping"]),),
        _OBJECTIVE_LABELS,
    ),
    Inhibition(
        "A page makes a ticket about the same budget redundant.",
        (equal("severity", "page"), unequal("sli", ""), unequal("flow", "")),
        (equal("severity", "ticket"), unequal("sli", "")),
        ("flow", "sli"),
    ),
)


def inhibitions() -> list[dict[str, Any]]:
    """Return the section `inhibit_rules`; Alertmanager 0.25 has no field for the reason."""
    return [
        {
            "source_matchers": [str(each) for each in rule.source],
            "target_matchers": [str(each) for each in rule.target],
            **({"equal": list(rule.by)} if rule.by else {}),
        }
        for rule in INHIBITIONS
    ]
