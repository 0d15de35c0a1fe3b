"""Annotations of the alerts about objectives, as Prometheus templates.

An alert has one value; the remaining budget comes from a query in the template, with a fallback for
an empty result. The texts hold no character that Slack's markup uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.burn.series_expressions import WINDOW_NAMES
from mm2slo_alerts.recording.rule_intervals import LATE_STEP
from mm2slo_core.catalogue import BUDGET_REMAINING
from mm2slo_core.promql import duration

if TYPE_CHECKING:
    from mm2slo_alerts.rule_model import Scale
    from mm2slo_core.objectives import WindowPair

_SUBJECT: Final = (
    '{{ $labels.flow }}: {{ reReplaceAll "_" " " $labels.sli }}'
    '{{ if and (ne $labels.tier "all") (ne $labels.tier "default") }} {{ $labels.tier }}{{ end }}'
)
_MATCHERS: Final = "{flow=%q, sli=%q, tier=%q}"


def burn_annotations(pair: WindowPair, scale: Scale) -> dict[str, str]:
    """Annotations of a pair's alert; its value is the burn rate of the long window."""
    long, short = WINDOW_NAMES[pair.long], WINDOW_NAMES[pair.short]
    rate = (
        '{{ if lt $value 100.0 }}{{ printf "%.3g" $value }}'
        '{{ else }}{{ printf "%.0f" $value }}{{ end }}'
    )
    return {
        "summary": f"{_SUBJECT} is burning error budget at {rate}x the sustainable rate "
        f"({long} and {short} windows)",
        "impact": _remaining(scale),
        "action": "Query mm2_flow_state and mm2_task_state of the flow, then follow the runbook "
        "for this SLI.",
    }


def exhausted_annotations() -> dict[str, str]:
    """Annotations for an exhausted budget; the value is the spent share, 1 or more."""
    return {
        "summary": f"{_SUBJECT} error budget is overspent by "
        f"{_percent('$value', '100 * %f - 100')} %",
        "impact": "The objective is not met, and stays so until the bad events leave its window.",
        "action": "Find out on the dashboard when the budget was spent, and postpone risky changes "
        "to the flow.",
    }


def coverage_annotations() -> dict[str, str]:
    """Annotations for low coverage; the value is the known share."""
    return {
        "summary": f"{_SUBJECT} coverage is {{{{ $value | humanizePercentage }}}} of the last hour",
        "impact": "A fault may go unnoticed, and whether the objective is met is unknown.",
        "action": "Query mm2_exporter_collect_errors_total by cluster and stage for what the "
        "exporter cannot read.",
    }


def _remaining(scale: Scale) -> str:
    value = ". | first | value"
    remaining = f"last_over_time({BUDGET_REMAINING.name}{_MATCHERS}[{duration(scale(LATE_STEP))}])"
    return (
        f'{{{{ with printf "{remaining}" $labels.flow $labels.sli $labels.tier | query }}}}'
        f"{{{{ if lt ({value}) 0.0 }}}}The error budget is overspent by "
        f"{_percent(value, '-100 * %f')} %"
        f"{{{{ else }}}}{{{{ {value} | humanizePercentage }}}} of the error budget is left"
        "{{ end }}{{ else }}The remaining error budget is unknown{{ end }}."
    )


def _percent(value: str, formula: str) -> str:
    """Prometheus's templates have no arithmetic of their own: a query of a number calculates."""
    return f'{{{{ printf "%.0f" (printf "{formula}" ({value}) | query | first | value) }}}}'
