"""What silences what, so that one fault is one page.

Alertmanager takes a label that is missing for an empty one, so a source of inhibition always
demands the labels that `equal` compares: a rule for sources of flows would else silence all that
is of no flow. No source matches its own target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mm2slo_alerts import aftermath
from mm2slo_core.promql import Matcher, equal, matching, unequal, unmatching

if TYPE_CHECKING:
    from mm2slo_alerts.aftermath import Memory

Alerts = Sequence[Matcher]


class Inhibition(NamedTuple):
    """While an alert of `source` fires, those of `target` with the same labels `by` are silent."""

    why: str
    source: Alerts
    target: Alerts
    by: tuple[str, ...] = ()


_UNREACHABLE: Final = "MM2ClusterUnreachable|MM2ClusterRecentlyUnreachable"
# Loss is told whatever else is: it does not end with the outage.
_LOSS: Final = "MM2RecordsLost|MM2RetentionHeadroomLow"
_TOLD_ANYHOW: Final = f"{_UNREACHABLE}|{_LOSS}|{aftermath.ALERT}"
_STOP_BURNS: Final = "availability|latency|data_freshness|checkpoint_freshness"
_STOP_CAUSES: Final = (
    "MM2PartitionStalled|MM2ConnectorFailed|MM2TaskFailed|MM2CheckpointStalled|"
    "MM2FailoverNotReady|MM2TransactionHangs"
)
_COVERAGE: Final = "MM2SLOCoverageLow"
_UNSCRAPED: Final = f"MM2FlowMetricsAbsent|{_COVERAGE}|MM2CollectionFailing"
_BURN: Final = "MM2ErrorBudgetBurn"
_OF_OBJECTIVE: Final = ("flow", "sli", "tier")
_KNOWN_OBJECTIVE: Final = tuple(unequal(label, "") for label in _OF_OBJECTIVE)


def _named(names: str) -> Matcher:
    return matching("alertname", names) if "|" in names else equal("alertname", names)


def _remembered(memory: Memory, by: tuple[str, ...] = ()) -> Alerts:
    """The aftermath's alert of *memory*, with the labels *by*."""
    return (
        equal("alertname", aftermath.ALERT),
        *(equal(name, value) for name, value in memory.labels.items()),
        *(unequal(label, "") for label in by),
    )


INHIBITIONS: Final = (
    *(
        Inhibition(
            f"A flow whose {role} does not answer can tell nothing else.",
            (_named(_UNREACHABLE), unequal(role, "")),
            (unequal("flow", ""), unmatching("alertname", _TOLD_ANYHOW)),
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
        _remembered(aftermath.AFTER_EXPORTER),
        (_named(_COVERAGE),),
    ),
    Inhibition(
        "What nothing measured stays in that hour.",
        _remembered(aftermath.AFTER_ABSENCE, ("flow",)),
        (_named(_COVERAGE),),
        ("flow",),
    ),
    *(
        Inhibition(
            f"What was unknown while a {role} did not answer stays in that hour.",
            _remembered(aftermath.AFTER_OUTAGE, (role,)),
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
        _remembered(aftermath.AFTER_STOP, ("flow",)),
        (matching("alertname", f"{_BURN}.+"), matching("sli", _STOP_BURNS)),
        ("flow",),
    ),
    Inhibition(
        "A flow that is stopped stands still in each of its parts.",
        _remembered(aftermath.JUST_AFTER_STOP, ("flow",)),
        (_named(_STOP_CAUSES),),
        ("flow",),
    ),
    Inhibition(
        "The fast pair says it first.",
        (_named(f"{_BURN}Fast"), *_KNOWN_OBJECTIVE),
        (_named(f"{_BURN}Steady|{_BURN}Slow|{_BURN}Creeping"),),
        _OF_OBJECTIVE,
    ),
    Inhibition(
        "The budget burns no more, and the steady pair's windows remember.",
        _remembered(aftermath.AFTER_BURN, _OF_OBJECTIVE),
        (_named(f"{_BURN}Steady"),),
        _OF_OBJECTIVE,
    ),
    Inhibition(
        "The steady pair says it before the slow ones.",
        (_named(f"{_BURN}Steady"), *_KNOWN_OBJECTIVE),
        (_named(f"{_BURN}Slow|{_BURN}Creeping"),),
        _OF_OBJECTIVE,
    ),
    Inhibition(
        "The slow pair says it before the creeping one.",
        (_named(f"{_BURN}Slow"), *_KNOWN_OBJECTIVE),
        (_named(f"{_BURN}Creeping"),),
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
