"""docs/alerts.md: every alert, when it fires and what it says, and every threshold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.model import AlertRule
from mm2slo_core.promql import duration, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_alerts.model import Group
    from mm2slo_alerts.thresholds import Limit, Thresholds

_INTRO: Final = """\
# Alerts

Generated from the rules (`python -m mm2slo_cli.docs`); do not edit.

Alerts on **error budgets** say that users feel it; alerts on **causes** say what is broken, most
of them before a budget burns. A *page* wakes somebody, a *ticket* waits for the next working day,
and *none* reaches nobody: it keeps other alerts quiet, or proves that alerting works. Each name
leads to its runbook. What is recorded, and how Prometheus 3 reads it, is in
[rules.md](rules.md).

- Gauges are read through failed scrapes of up to two minutes; one lost scrape resets no `for`.
- Replicas of the exporter are one: where they differ, the expression says which one counts.
- Labels `topic` and `partition` are absent where `exporter.granularity` is coarser; the alerts
  then name the flow alone.
- An alert about a budget goes to its objective's channel, one about a cause of a flow to the
  channel of the flow's availability (or data freshness) objective, all else to `slo.channel`.
- Alerts that wait for something to be mended are silent under planned maintenance; those about
  loss are not.

`mm2slo alerts test` runs promtool's tests of each alert (`tests/rules/`).
"""
_TOPIC: Final = "{{ with $labels.topic }}topic {{ . }} of {{ end }}"
_MISSING: Final = re.compile(r"\{\{ else \}\}n/a\{\{ end \}\}")
_OTHERWISE: Final = re.compile(r"\{\{ else[^}]*\}\}")
_CONDITION: Final = re.compile(r"\{\{ (?:if|with|range|end)\b[^}]*\}\}")
_LABEL: Final = re.compile(r"\{\{[^}]*\$labels\.(\w+)[^}]*\}\}")
_VALUE: Final = re.compile(r"\{\{[^}]*\}\}")


def render(groups: Iterable[Group], thresholds: Thresholds) -> str:
    """The whole page."""
    alerts: dict[str, list[AlertRule]] = {}
    for group in groups:
        for rule in group.rules:
            if isinstance(rule, AlertRule):
                alerts.setdefault(rule.alert, []).append(rule)
    overview = [
        f"| [{name}](runbooks/{name}.md) | {rules[0].labels['severity']} "
        f"| {_time(rules[0].hold)} | {_time(rules[0].keep)} | {_plain(rules[0], 'summary')} |"
        for name, rules in alerts.items()
    ]
    return "\n".join(
        (
            _INTRO,
            "## Overview",
            "",
            "| Alert | Severity | for | keep_firing_for | Says |",
            "| --- | --- | --- | --- | --- |",
            *overview,
            "",
            "## Each alert",
            "",
            *(_section(name, rules) for name, rules in alerts.items()),
            "## Thresholds",
            "",
            "All numbers that are not objectives (`alerts/mm2slo_alerts/thresholds.py`).",
            "",
            "| Name | Value | Why |",
            "| --- | --- | --- |",
            *(f"| `{each.name}` | {_limit(each)} | {each.why} |" for each in thresholds.limits()),
            "",
        )
    )


def _section(name: str, rules: Sequence[AlertRule]) -> str:
    first = rules[0]
    lines = [f"### {name}", "", f"- **Users feel**: {_plain(first, 'impact')}"]
    lines += [f"- **First step**: {_plain(first, 'first_step')}", ""]
    for rule in rules:
        lines += ["```promql", rule.expr, "```", ""]
    return "\n".join(lines)


def _plain(rule: AlertRule, annotation: str) -> str:
    """A text without templates: labels by their names, values as *n*, alternatives in a row."""
    text = rule.annotations[annotation].replace(_TOPIC, "topic *topic* of ")
    text = _OTHERWISE.sub(" / ", _MISSING.sub("", text))
    text = _LABEL.sub(r"*\1*", _CONDITION.sub("", text))
    return _VALUE.sub("*n*", text).replace("|", "\\|")


def _time(seconds: float) -> str:
    return duration(seconds) if seconds else "-"


def _limit(limit: Limit) -> str:
    if isinstance(limit.value, str):
        return f"`{limit.value}`"
    if limit.unit == "seconds":
        return duration(limit.value)
    return f"{number(limit.value)} {limit.unit}"
