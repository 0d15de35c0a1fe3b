"""Annotations of the alerts about objectives, as Prometheus templates.

An alert has one value; other figures come from queries in the template, each with a fallback for an
empty result. The texts hold no character that Slack's markup uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.budget_text import budget_text, exhausted_in, overspent_text
from mm2slo_alerts.burn.series_expressions import ON, WINDOW_NAMES
from mm2slo_alerts.recording.rule_intervals import STEP
from mm2slo_core.catalogue import BUDGET_REMAINING, BURN, OBJECTIVE_WINDOW
from mm2slo_core.promql import duration
from mm2slo_core.sli_counters import Sli

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.rule_model import Scale
    from mm2slo_core.catalogue import RecordedSeries
    from mm2slo_core.objectives import WindowPair

_SLI: Final = (
    '{{ reReplaceAll "_" " " $labels.sli }}'
    '{{ if and (ne $labels.tier "all") (ne $labels.tier "default") }} {{ $labels.tier }}{{ end }}'
)
_SUBJECT: Final = f"{{{{ $labels.flow }}}}: {_SLI}"
_MATCHERS: Final = "{flow=%q, sli=%q, tier=%q}"
_ARGUMENTS: Final = "$labels.flow $labels.sli $labels.tier"
_RATE: Final = (
    '{{ if lt $value 100.0 }}{{ printf "%.3g" $value }}'
    '{{ else }}{{ printf "%.0f" $value }}{{ end }}'
)

IMPACT: Final[Mapping[Sli, str]] = {
    Sli.AVAILABILITY: "Records written to {{ $labels.source }} reach {{ $labels.target }} late, "
    "or not at all.",
    Sli.LATENCY: "Records reach {{ $labels.target }} more than {{ $labels.tier }} after they were "
    "written.",
    Sli.DATA_FRESHNESS: "Consumers on {{ $labels.target }} read older data than the objective "
    "allows.",
    Sli.COMPLETENESS: "Records written to {{ $labels.source }} are missing on "
    "{{ $labels.target }}.",
    Sli.UNIQUENESS: "Consumers on {{ $labels.target }} read some records twice.",
    Sli.ORDER: "Consumers on {{ $labels.target }} read records in another order than they were "
    "written.",
    Sli.AFFINITY: "Records of one key are in several partitions on {{ $labels.target }} and can be "
    "read out of order.",
    Sli.CHECKPOINT_FRESHNESS: "After a failover to {{ $labels.target }}, consumer groups would "
    "read more records again than the objective allows.",
}
ACTION: Final[Mapping[Sli, str]] = {
    Sli.AVAILABILITY: "Check whether MirrorMaker 2 is replicating: mm2_flow_state, mm2_task_state.",
    Sli.LATENCY: "Compare mm2_flow_lag_seconds with the load, and look for restarting tasks and "
    "slow clusters.",
    Sli.DATA_FRESHNESS: "Find the topics that lag with mm2_replication_lag_seconds, then check "
    "their tasks.",
    Sli.COMPLETENESS: "Query mm2_canary_lost_total and mm2_retention_lost_records_total, and run "
    "an audit to list the records.",
    Sli.UNIQUENESS: "Look for task restarts: MirrorMaker 2 replicates a batch again after each.",
    Sli.ORDER: "Look for task restarts, and check that MirrorMaker 2's producers are idempotent.",
    Sli.AFFINITY: "Compare the partition counts of the topics on both clusters: "
    "mm2_partition_drift.",
    Sli.CHECKPOINT_FRESHNESS: "Find the groups with mm2_checkpoint_age_seconds, then check the "
    "checkpoint connector.",
}


def burn_annotations(pair: WindowPair, scale: Scale) -> dict[str, str]:
    """Annotations of a pair's alert; its value is the burn rate of the long window."""
    long, short = WINDOW_NAMES[pair.long], WINDOW_NAMES[pair.short]
    return {
        "summary": f"{_SUBJECT} is burning error budget at {_RATE}x the sustainable rate "
        f"({long} and {short} windows)",
        "impact": _by_sli(IMPACT),
        "action": _by_sli(ACTION),
        "budget": _budget(pair.long, scale),
    }


def exhausted_annotations(scale: Scale) -> dict[str, str]:
    """Annotations for an exhausted budget; the value is the spent share, 1 or more."""
    return {
        "summary": f"{_SUBJECT} {overspent_text('$value', '100 * %f - 100')}",
        "impact": _by_sli(IMPACT),
        "action": "Find out on the dashboard when the budget was spent, and postpone risky changes "
        "to the flow.",
        "budget": _left(scale),
    }


def coverage_annotations(scale: Scale) -> dict[str, str]:
    """Annotations for low coverage; the value is the known share."""
    return {
        "summary": f"{_SUBJECT} coverage is {{{{ $value | humanizePercentage }}}} of the last hour",
        "impact": "A fault may go unnoticed, and whether the objective is met is unknown.",
        "action": "Check that the exporter is scraped, and query mm2_exporter_collect_errors_total "
        "by cluster and stage for what it cannot read.",
        "budget": _left(scale),
    }


def _by_sli(texts: Mapping[Sli, str]) -> str:
    """A template that selects by the label `sli`."""
    parts = [
        f'{{{{ {"else " if index else ""}if eq $labels.sli "{sli.value}" }}}}{text}'
        for index, (sli, text) in enumerate(texts.items())
    ]
    return "".join(parts) + "{{ end }}"


def _latest(series: RecordedSeries, scale: Scale) -> str:
    """The last value, also of a series that is recorded every 5 minutes."""
    return f"last_over_time({series.name}{_MATCHERS}[{duration(2 * scale(STEP))}])"


def _left(scale: Scale) -> str:
    return budget_text(_latest(BUDGET_REMAINING, scale), _ARGUMENTS)


def _budget(length: float, scale: Scale) -> str:
    """What is left, and when it is exhausted at the burn rate of the window of *length* seconds.

    remaining * window / burn: a burn rate of 1 spends the whole budget in the whole window.
    """
    ends = (
        f"{_latest(BUDGET_REMAINING, scale)} * {ON} {OBJECTIVE_WINDOW.name}{_MATCHERS} / {ON} "
        f"({_latest(BURN[WINDOW_NAMES[length]], scale)} > 0) > 0"
    )
    arguments = f" {_ARGUMENTS}" * ends.count(_MATCHERS)
    then = f", {exhausted_in()}{{{{ end }}}}"
    return f'{_left(scale)}{{{{ with printf "{ends}"{arguments} | query }}}}{then}'
