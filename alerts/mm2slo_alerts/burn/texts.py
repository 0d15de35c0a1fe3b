"""What the alerts about objectives say, as templates that Prometheus fills in.

Figures come from queries of the template, since an alert has one value only. A query without a
result must not leave an error in the message: each has a word to fall back on. The texts hold no
character that Slack's markup gives a meaning to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.budget_words import budget_words, spent_words
from mm2slo_alerts.burn.reading import ON, WINDOW_NAMES
from mm2slo_alerts.recording.timing import STEP
from mm2slo_core.catalogue import (
    BUDGET_REMAINING,
    BURN,
    COVERAGE,
    ERROR,
    OBJECTIVE,
    OBJECTIVE_WINDOW,
)
from mm2slo_core.promql import duration
from mm2slo_core.sli import Sli

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.model import Scale
    from mm2slo_core.catalogue import RecordedSeries
    from mm2slo_core.objectives import BurnPair

_SLI: Final = (
    '{{ reReplaceAll "_" " " $labels.sli }}'
    '{{ if and (ne $labels.tier "all") (ne $labels.tier "default") }} {{ $labels.tier }}{{ end }}'
)
_CHOSEN: Final = "{flow=%q, sli=%q, tier=%q}"
_ARGUMENTS: Final = "$labels.flow $labels.sli $labels.tier"

IMPACT: Final[Mapping[Sli, str]] = {
    Sli.AVAILABILITY: "Records written to {{ $labels.source }} reach {{ $labels.target }} late, "
    "or not at all.",
    Sli.LATENCY: "Records reach {{ $labels.target }} later than {{ $labels.tier }} after they were "
    "written.",
    Sli.DATA_FRESHNESS: "Consumers on {{ $labels.target }} read data that is older than promised.",
    Sli.COMPLETENESS: "Records written to {{ $labels.source }} are missing on "
    "{{ $labels.target }}.",
    Sli.UNIQUENESS: "Consumers on {{ $labels.target }} read records twice.",
    Sli.ORDER: "Consumers on {{ $labels.target }} read records in another order than they were "
    "written.",
    Sli.AFFINITY: "Records change their partition on the way to {{ $labels.target }}: order by key "
    "is not kept.",
    Sli.CHECKPOINT_FRESHNESS: "After a failover to {{ $labels.target }} consumer groups would read "
    "again more than promised.",
}
"""What users feel when an indicator is bad."""
FIRST_STEP: Final[Mapping[Sli, str]] = {
    Sli.AVAILABILITY: "See whether MirrorMaker 2 copies at all: mm2_flow_state, mm2_task_state.",
    Sli.LATENCY: "Compare mm2_flow_lag_seconds with the load: a task that restarts, or a cluster "
    "that is slow to answer?",
    Sli.DATA_FRESHNESS: "Find the topics that lag: mm2_replication_lag_seconds, then their tasks.",
    Sli.COMPLETENESS: "See what was lost: mm2_canary_lost_total, mm2_retention_lost_records_total; "
    "an audit names the records.",
    Sli.UNIQUENESS: "Look for restarts of tasks: MirrorMaker 2 copies a batch again after each.",
    Sli.ORDER: "Look for restarts of tasks, and whether MirrorMaker 2's producers are idempotent.",
    Sli.AFFINITY: "Compare the partition counts of the topics on both sides: mm2_partition_drift.",
    Sli.CHECKPOINT_FRESHNESS: "Find the groups: mm2_checkpoint_age_seconds, then the checkpoint "
    "connector.",
}
"""Where to look first, by indicator."""


def burn_texts(pair: BurnPair, scale: Scale) -> dict[str, str]:
    """The texts of a pair's alert; its value is the long window's burn rate."""
    long, short = WINDOW_NAMES[pair.long], WINDOW_NAMES[pair.short]
    bad_long = _figure(_latest(ERROR[long], scale), "humanizePercentage")
    bad_short = _figure(_latest(ERROR[short], scale), "humanizePercentage")
    return {
        "summary": f"{{{{ $labels.flow }}}}: {_SLI} burns its error budget "
        f'{{{{ printf "%.2f" $value }}}} times as fast as it may ({long} and {short} windows)',
        "description": f"{bad_long} of events were bad in the last {long}, {bad_short} in the last "
        f"{short}. {_promised()}",
        "impact": _by_sli(IMPACT),
        "first_step": _by_sli(FIRST_STEP),
        "budget": _budget(pair.long, scale),
    }


def exhausted_texts(scale: Scale) -> dict[str, str]:
    """The texts of the alert for a spent budget; its value is the spent share, 1 or more."""
    return {
        "summary": f"{{{{ $labels.flow }}}}: {_SLI} has spent its error budget",
        "description": f"Over the window, {spent_words('$value')}. {_promised()} The budget "
        "returns as bad events grow older than that.",
        "impact": _by_sli(IMPACT),
        "first_step": "See when the budget was spent before changing anything: the dashboard shows "
        "it by day. Put off risky changes to the flow.",
        "budget": _left(scale),
    }


def coverage_texts(scale: Scale) -> dict[str, str]:
    """The texts of the alert for low coverage; its value is the share that is known."""
    return {
        "summary": f"{{{{ $labels.flow }}}}: {_SLI} cannot be judged, "
        "{{ $value | humanizePercentage }} of the last hour is known",
        "description": "Events are unknown, or the exporter was not scraped: what is left says too "
        f"little. Over the whole window "
        f"{_figure(_latest(COVERAGE['_window'], scale), 'humanizePercentage')} is known.",
        "impact": "Nobody can say whether the promise holds, and a fault may go unnoticed.",
        "first_step": "See whether the exporter is scraped and what it cannot read: "
        "mm2_exporter_collect_errors_total by cluster and stage.",
        "budget": _left(scale),
    }


def _by_sli(texts: Mapping[Sli, str]) -> str:
    """A template that picks by the label `sli`."""
    parts = [
        f'{{{{ {"else " if index else ""}if eq $labels.sli "{sli.value}" }}}}{text}'
        for index, (sli, text) in enumerate(texts.items())
    ]
    return "".join(parts) + "{{ end }}"


def _query(expression: str, then: str, otherwise: str) -> str:
    """*then* with the result of *expression*, which holds `_CHOSEN` any number of times."""
    arguments = f" {_ARGUMENTS}" * expression.count(_CHOSEN)
    last = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f'{{{{ with printf "{expression}"{arguments} | query }}}}{then}{last}{{{{ end }}}}'


def _figure(expression: str, form: str) -> str:
    return _query(expression, f"{{{{ . | first | value | {form} }}}}", "n/a")


def _latest(series: RecordedSeries, scale: Scale) -> str:
    """The newest value, also of a series that is recorded every 5 minutes."""
    return f"last_over_time({series.name}{_CHOSEN}[{duration(2 * scale(STEP))}])"


def _promised() -> str:
    target = _figure(f"{OBJECTIVE.name}{_CHOSEN}", "humanizePercentage")
    window = _figure(f"{OBJECTIVE_WINDOW.name}{_CHOSEN}", "humanizeDuration")
    return f"Promised are {target} good ones within {window}."


def _left(scale: Scale) -> str:
    return budget_words(_latest(BUDGET_REMAINING, scale), _ARGUMENTS)


def _budget(length: float, scale: Scale) -> str:
    """What is left, and when it is spent at the speed of the window of *length* seconds.

    remaining * window / burn: a burn rate of 1 spends all of the budget in the whole window.
    """
    ends = (
        f"{_latest(BUDGET_REMAINING, scale)} * {ON} {OBJECTIVE_WINDOW.name}{_CHOSEN} / {ON} "
        f"({_latest(BURN[WINDOW_NAMES[length]], scale)} > 0) > 0"
    )
    return _left(scale) + _query(
        ends, ", and spent in {{ . | first | value | humanizeDuration }} at this speed", ""
    )
