"""What silences what, so that one fault is one page.

Alertmanager takes a label that is missing for an empty one, so a source of inhibition always
demands the labels that `equal` compares: a rule for sources of flows would else silence all that
is of no flow. No source matches its own target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mm2slo_alerts import aftermath, catching_up
from mm2slo_alerts.burn.pairs import ALERTS as BURNS
from mm2slo_alerts.causes.clusters import LASTS, STANDS, WITHIN
from mm2slo_core.promql import Matcher, equal, matching, unequal, unmatching

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_alerts.aftermath import Memory

Alerts = Sequence[Matcher]


class Inhibition(NamedTuple):
    """While an alert of `source` fires, those of `target` with the same labels `by` are silent."""

    why: str
    source: Alerts
    target: Alerts
    by: tuple[str, ...] = ()


_AWAY: Final = "MM2ClusterUnreachable"
_LATELY_AWAY: Final = "MM2ClusterRecentlyUnreachable"
_UNREACHABLE: Final = f"{_AWAY}|{_LATELY_AWAY}"
# Loss is told whatever else is: it does not end with the outage.
_LOSS: Final = "MM2RecordsLost|MM2RetentionHeadroomLow"
_TOLD_ANYHOW: Final = f"{_UNREACHABLE}|{_LOSS}|{aftermath.ALERT}|{catching_up.ALERT}"
_STOP_BURNS: Final = "availability|latency|data_freshness|checkpoint_freshness"
_STOP_CAUSES: Final = "MM2PartitionStalled|MM2ConnectorFailed|MM2TaskFailed|MM2TransactionHangs"
# What groups read on the target is as old as the flow is behind.
_STOP_GROUPS: Final = "MM2CheckpointStalled|MM2FailoverNotReady"
_COVERAGE: Final = "MM2SLOCoverageLow"
_UNSCRAPED: Final = f"MM2FlowMetricsAbsent|{_COVERAGE}|MM2CollectionFailing"
# What an outage leaves in windows, and in groups that read on the target.
_BUDGETS: Final = f"{'|'.join(BURNS.values())}|MM2ErrorBudgetExhausted"
_LOOKS_BACK: Final = f"{_BUDGETS}|{_COVERAGE}|{_STOP_GROUPS}"
_PAGES: Final = f"{BURNS['fast']}|{BURNS['steady']}"
# A budget that is spent stays so for weeks: it is told once the last bad event is counted.
_SPENT: Final = "MM2ErrorBudgetExhausted"
_TOLD_BY_PAIR: Final = {
    "steady": BURNS["steady"],
    "slow": f"{BURNS['slow']}|{_SPENT}",
    "creeping": BURNS["creeping"],
}
_OF_OBJECTIVE: Final = ("flow", "sli", "tier")
_KNOWN_OBJECTIVE: Final = tuple(unequal(label, "") for label in _OF_OBJECTIVE)


def _named(names: str) -> Matcher:
    return matching("alertname", names) if "|" in names else equal("alertname", names)


def _lately_away(within: str) -> Alerts:
    """That a cluster did not answer within that time, before any page of it, too."""
    return (_named(_LATELY_AWAY), equal(WITHIN, within))


def _remembered(memory: Memory, by: tuple[str, ...] = ()) -> Alerts:
    """The aftermath's alert of *memory*, with the labels *by*."""
    return (
        equal("alertname", aftermath.ALERT),
        *(equal(name, value) for name, value in memory.labels.items()),
        *(unequal(label, "") for label in by),
    )


def _burns(names: str) -> Alerts:
    """Alerts *names* about budgets that any flow burns that does not copy."""
    return (_named(names), matching("sli", _STOP_BURNS))


def _tickets_after(
    fault: str, memories: Mapping[str, Memory], by: tuple[str, ...]
) -> Iterator[Inhibition]:
    """What is no page of the budgets that *fault* burnt, for as long as it is in the windows."""
    for pair in ("slow", "creeping"):
        yield Inhibition(
            f"The {pair} pair's short window still holds the {fault}.",
            _remembered(memories[pair], by),
            _burns(_TOLD_BY_PAIR[pair]),
            by,
        )


INHIBITIONS: Final = (
    *(
        Inhibition(
            f"A flow whose {role} {why}.",
            (*source, unequal(role, "")),
            (unequal("flow", ""), unmatching("alertname", _TOLD_ANYHOW)),
            (role,),
        )
        for why, source in (
            ("does not answer can tell nothing else", (_named(_AWAY),)),
            ("answers again needs time to come back", _lately_away(STANDS)),
        )
        for role in ("source", "target")
    ),
    *(
        Inhibition(
            f"What an outage of the {role} left is in the windows still.",
            (*_lately_away(LASTS), unequal(role, "")),
            (unequal("flow", ""), _named(_LOOKS_BACK)),
            (role,),
        )
        for role in ("source", "target")
    ),
    Inhibition(
        "Collecting from a cluster that does not answer fails.",
        (_named(_UNREACHABLE), unequal("cluster", "")),
        (_named("MM2CollectionFailing"),),
        ("cluster",),
    ),
    Inhibition(
        "What the exporter does not publish cannot be there.",
        (_named("MM2ExporterDown"),),
        (_named(_UNSCRAPED),),
    ),
    Inhibition(
        "The exporter is back, and its flows are not read to their end yet.",
        _remembered(aftermath.JUST_AFTER_EXPORTER),
        (_named(_UNSCRAPED),),
    ),
    Inhibition(
        "What the exporter did not see stays in the hour that coverage is judged by.",
        _remembered(aftermath.UNSEEN_BY_EXPORTER),
        (_named(_COVERAGE),),
    ),
    Inhibition(
        "What nothing measured stays in that hour.",
        _remembered(aftermath.UNSEEN_BY_ABSENCE, ("flow",)),
        (_named(_COVERAGE),),
        ("flow",),
    ),
    *(
        Inhibition(
            f"What was unknown while a {role} did not answer stays in that hour.",
            _remembered(aftermath.UNSEEN_IN_OUTAGE, (role,)),
            (_named(_COVERAGE),),
            (role,),
        )
        for role in ("source", "target")
    ),
    Inhibition(
        "A flow that nothing measures is not covered.",
        (_named("MM2FlowMetricsAbsent"), unequal("flow", "")),
        (_named(_COVERAGE),),
        ("flow",),
    ),
    Inhibition(
        "A flow that is stopped burns every budget that waits for records.",
        _remembered(aftermath.AFTER_STOP["steady"], ("flow",)),
        _burns(_PAGES),
        ("flow",),
    ),
    Inhibition(
        "A flow that works off what a paged fault left burns them until it is done.",
        _remembered(aftermath.AFTER_CATCHING_UP["fast"], ("flow",)),
        _burns(_PAGES),
        ("flow",),
    ),
    *(
        Inhibition(
            "Groups resume from what was copied.",
            _remembered(memory, ("flow",)),
            (_named(_STOP_GROUPS),),
            ("flow",),
        )
        for memory in (aftermath.AFTER_STOP["steady"], aftermath.AFTER_CATCHING_UP["fast"])
    ),
    *_tickets_after("stop", aftermath.AFTER_STOP, ("flow",)),
    *_tickets_after("backlog", aftermath.AFTER_CATCHING_UP, ("flow",)),
    *(
        inhibition
        for role in ("source", "target")
        for inhibition in _tickets_after(f"outage of the {role}", aftermath.AFTER_OUTAGE, (role,))
    ),
    Inhibition(
        "A flow that is stopped stands still in each of its parts.",
        _remembered(aftermath.JUST_AFTER_STOP, ("flow",)),
        (_named(_STOP_CAUSES),),
        ("flow",),
    ),
    Inhibition(
        "The fast pair says it first.",
        (_named(BURNS["fast"]), *_KNOWN_OBJECTIVE),
        (_named("|".join(BURNS[pair] for pair in ("steady", "slow", "creeping"))),),
        _OF_OBJECTIVE,
    ),
    *(
        Inhibition(
            f"The {slower} pair's short window still holds what the {faster} one told.",
            _remembered(memory, _OF_OBJECTIVE),
            (_named(_TOLD_BY_PAIR[slower]),),
            _OF_OBJECTIVE,
        )
        for faster, memories in aftermath.AFTER_BURN.items()
        for slower, memory in memories.items()
    ),
    Inhibition(
        "The steady pair says it before the slow ones.",
        (_named(BURNS["steady"]), *_KNOWN_OBJECTIVE),
        (_named(f"{BURNS['slow']}|{BURNS['creeping']}"),),
        _OF_OBJECTIVE,
    ),
    Inhibition(
        "The slow pair says it before the creeping one.",
        (_named(BURNS["slow"]), *_KNOWN_OBJECTIVE),
        (_named(BURNS["creeping"]),),
        _OF_OBJECTIVE,
    ),
    Inhibition(
        "Who was woken needs no ticket of the same budget.",
        (equal("severity", "page"), unequal("sli", ""), unequal("flow", "")),
        (equal("severity", "ticket"), unequal("sli", "")),
        ("flow", "sli"),
    ),
)


def inhibitions() -> list[dict[str, Any]]:
    """The section `inhibit_rules`; 0.25 has no place for the reasons."""
    return [
        {
            "source_matchers": [str(each) for each in rule.source],
            "target_matchers": [str(each) for each in rule.target],
            **({"equal": list(rule.by)} if rule.by else {}),
        }
        for rule in INHIBITIONS
    ]
