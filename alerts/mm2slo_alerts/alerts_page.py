"""docs/alerts.md, with every alert and threshold, and the index of the runbooks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Final

from mm2slo_alerts.alert_rules import AlertRule, Group
from mm2slo_alerts.alert_thresholds import Thresholds
from mm2slo_alerts.cause_model import NONE, PAGE, TICKET
from mm2slo_core.catalogue.promql import duration, number
from mm2slo_core.objectives.objective import MIDDLE_TIER, ObjectiveRule
from mm2slo_core.quantity_text import percent_text

_INTRO: Final = """\
# Alerts

Generated from the rules (`python -m mm2slo_cli.docs`); do not edit.

Alerts on **error budgets** report symptoms for users; alerts on **causes** report what is broken,
most of them before a budget burns. A *page* notifies on-call immediately, a *ticket* is handled
within working hours; the watchdog (*none*) proves that alerting works. Each name links to its
runbook. Recording rules are in [rules.md](rules.md).

- Gauges are read through failed scrapes of up to two minutes; one failed scrape resets no `for`.
- Replicas of the exporter are aggregated; where they differ, the expression decides which counts.
- Labels `topic` and `partition` are absent where `exporter.granularity` is coarser; the alerts
  then name the flow only.
- An alert about a budget goes to its objective's channel, one about a cause of a flow to the
  channel of the flow's availability (or data freshness) objective, all others to `slo.channel`.
- Alerts about stops and failures are silent during planned maintenance; those about loss are not.
- All pages about a flow are one message, all pages about a cluster another, and so are tickets;
  other alerts are grouped by name. A message leads with the cause and lists the others.
- MM2FlowStopped inhibits the budget alerts of its flow, and MM2ClusterUnreachable every alert of
  the cluster's flows except MM2RecordsLost and MM2RetentionHeadroomLow.
- Annotations: `summary`, `impact`, `action`; `runbook_url`, `dashboard_url`, `report_url` and
  `splunk_url` where `alerting.links` has their base URLs.

`mm2slo alerts test` runs promtool's tests of each alert (`tests/rules/`), in a checkout.
"""
_OBJECTIVES: Final = """\
## Default objectives

Those of an indicator without an objective in `slo.objectives`, over `slo.window`; `mm2slo slo
export` prints yours. Latency thresholds are `latency_tiers`: between smallest and largest, the
target is {middle}. Uniqueness, order and affinity need `canary.carrier: topic`. A target that one
bad event would breach is lowered, or the objective is left out.

| SLI | Tier | Target | Highest severity |
| --- | --- | --- | --- |
{rows}
"""
_SEVERITIES: Final = {PAGE: "Pages", TICKET: "Tickets", NONE: "Watchdog"}
"""Titles of the tables of the runbooks' index."""

_WITH: Final = re.compile(r"\{\{ with \$labels\.(\w+) \}\}([^{]*)\{\{ \. \}\}")
_RANGE: Final = re.compile(r"\{\{ range .*?\{\{ \$found \| label \"(\w+)\" \}\}")
_MISSING: Final = re.compile(r"\{\{ else \}\}n/a\{\{ end \}\}")
# An action may hold a query, whose selectors have single braces: it ends at the first double one.
_OTHERWISE: Final = re.compile(r"\{\{ else.*?\}\}")
_CONDITION: Final = re.compile(r"\{\{ (?:if|with|range|end)\b.*?\}\}")
_LABEL: Final = re.compile(r"\{\{[^}]*\$labels\.(\w+)[^}]*\}\}")
_VALUE: Final = re.compile(r"\{\{.*?\}\}")


def render(
    groups: Iterable[Group], thresholds: Thresholds, objectives: Iterable[ObjectiveRule]
) -> str:
    """Return the page about the alerts of *groups* and the default *objectives*."""
    alerts = _by_name(groups)
    overview = [
        f"| [{name}](runbooks/{name}.md) | {rule.labels['severity']} "
        f"| {_time(rule.hold)} | {_time(rule.keep)} | {_plain(rule, 'summary')} |"
        for name, rules in alerts.items()
        for rule in rules
    ]
    return "\n".join(
        (
            _INTRO,
            _objectives(objectives),
            "## Overview",
            "",
            "| Alert | Severity | for | keep_firing_for | Summary |",
            "| --- | --- | --- | --- | --- |",
            *overview,
            "",
            "## Each alert",
            "",
            *(_section(name, rules) for name, rules in alerts.items()),
            "## Thresholds",
            "",
            "All figures that are not objectives (`alerts/mm2slo_alerts/alert_thresholds.py`).",
            "",
            "| Name | Value | Why |",
            "| --- | --- | --- |",
            *(
                f"| `{each.name}` | {_limit(getattr(thresholds, each.name), each.metadata['unit'])}"
                f" | {each.metadata['why']} |"
                for each in fields(thresholds)
            ),
            "",
        )
    )


def _objectives(rules: Iterable[ObjectiveRule]) -> str:
    rows = (
        f"| `{each.key.sli}` | {each.key.tier} | {percent_text(each.target)} "
        f"| {each.max_severity} |"
        for each in rules
    )
    return _OBJECTIVES.format(rows="\n".join(rows), middle=percent_text(MIDDLE_TIER.target))


def render_runbook_index(page: str, groups: Iterable[Group], runbooks: Mapping[str, str]) -> str:
    """Return *page*, docs/runbooks/README.md, with the current alerts in its tables.

    What is above the first table is written by hand; the tables have the lead of each of the
    *runbooks*, by alert. An alert whose rules differ in severity is in the table of its first rule.
    """
    alerts = [rules[0] for rules in _by_name(groups).values()]
    parts = [page.partition(f"## {next(iter(_SEVERITIES.values()))}\n")[0]]
    for severity, title in _SEVERITIES.items():
        rows = [
            f"| [{rule.alert}]({rule.alert}.md) | {_lead(runbooks[rule.alert])} |\n"
            for rule in alerts
            if rule.labels["severity"] == severity
        ]
        parts.append(f"## {title}\n\n| Alert | Meaning |\n|---|---|\n{''.join(rows)}")
    return parts[0] + "\n".join(parts[1:])


def _lead(runbook: str) -> str:
    """The sentence below the title and the line with severity and durations."""
    return runbook.split("\n\n", 3)[2]


def _by_name(groups: Iterable[Group]) -> dict[str, list[AlertRule]]:
    found: dict[str, list[AlertRule]] = {}
    for group in groups:
        for rule in group.rules:
            if isinstance(rule, AlertRule):
                found.setdefault(rule.alert, []).append(rule)
    return found


def _section(name: str, rules: Sequence[AlertRule]) -> str:
    first = rules[0]
    lines = [f"### {name}", "", f"- **Impact**: {_plain(first, 'impact')}"]
    lines += [f"- **Action**: {_plain(first, 'action')}", ""]
    for rule in rules:
        lines += ["```promql", rule.expr, "```", ""]
    return "\n".join(lines)


def _plain(rule: AlertRule, annotation: str) -> str:
    """Replace templates: labels by their names, values by *n*, alternatives joined by a slash."""
    text = _WITH.sub(r"\2*\1*", rule.annotations[annotation])
    text = _RANGE.sub(r"*\1*", text)
    text = _OTHERWISE.sub(" / ", _MISSING.sub("", text))
    text = _LABEL.sub(r"*\1*", _CONDITION.sub("", text))
    return _VALUE.sub("*n*", text).replace("|", "\\|")


def _time(seconds: float) -> str:
    return duration(seconds) if seconds else "-"


def _limit(value: float | str, unit: str) -> str:
    if isinstance(value, str):
        return f"`{value}`"
    return duration(value) if unit == "seconds" else f"{number(value)} {unit}"
