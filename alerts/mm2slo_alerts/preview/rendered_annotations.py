"""An alert's annotations, rendered by promtool.

A rule test lets an alert with the same labels and annotations fire but expects no alert: promtool
then prints the alert.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_alerts.rule_model import AlertRule, Group
from mm2slo_alerts.rule_text import prometheus_text, yaml_text
from mm2slo_core.promql import number, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.preview.sample_alerts import Sample

RULES_FILE: Final = "preview.rules.yml"
TESTS_FILE: Final = "preview.test.yml"
_METRIC: Final = "mm2slo_preview"
_LINE: Final = re.compile(r"^\s*(?P<kind>Labels|Annotations):\{(?P<pairs>.*)\},?\s*$", re.MULTILINE)
_PAIR: Final = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')


class Fired(NamedTuple):
    """An alert as Prometheus sends it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def annotation_files(rule: AlertRule, facts: Sample) -> dict[str, str]:
    """Return the files for `promtool test rules`, by name."""
    shown = AlertRule(
        alert=rule.alert, expr=_METRIC, labels=rule.labels, annotations=rule.annotations
    )
    chosen = ", ".join(f"{name}={quoted(value)}" for name, value in facts.labels.items())
    series = {f"{_METRIC}{{{chosen}}}": facts.value, **facts.series}
    test = {
        "interval": "1m",
        "input_series": [
            {"series": selector, "values": number(value)} for selector, value in series.items()
        ],
        "alert_rule_test": [{"eval_time": "0s", "alertname": rule.alert, "exp_alerts": []}],
    }
    return {
        RULES_FILE: prometheus_text([Group(name="preview", interval=60.0, rules=(shown,))]),
        TESTS_FILE: yaml_text(
            {"rule_files": [RULES_FILE], "evaluation_interval": "1m", "tests": [test]}
        ),
    }


def parse_fired(output: str) -> Fired:
    """Return the alert that promtool printed. Raises ValueError when *output* has no alert."""
    found = {match["kind"]: _pairs(match["pairs"]) for match in _LINE.finditer(output)}
    if set(found) != {"Labels", "Annotations"}:
        raise ValueError(f"no alert in promtool's output {output.strip()!r}")
    return Fired(found["Labels"], found["Annotations"])


def _pairs(text: str) -> dict[str, str]:
    # Go and Python quote strings alike.
    return {name: str(ast.literal_eval(literal)) for name, literal in _PAIR.findall(text)}
