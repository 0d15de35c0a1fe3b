"""Preview of an alert's Slack message: what promtool and amtool get and return.

promtool renders the annotations as Prometheus does, amtool the message templates as Alertmanager
does. These pure functions write their input and parse their output; the command line runs them.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from mm2slo_alerts.alert_rules import AlertRule, Group, prometheus_text, yaml_text
from mm2slo_alerts.alertmanager_config import Receivers, group_by
from mm2slo_core.catalogue.metric import FLOW_LABELS
from mm2slo_core.catalogue.prometheus_series import BUDGET_REMAINING, SLI_LABELS
from mm2slo_core.catalogue.promql import number, quoted
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.topology import Flow

RULES_FILE: Final = "preview.rules.yml"
TESTS_FILE: Final = "preview.test.yml"
_METRIC: Final = "mm2slo_preview"
_LINE: Final = re.compile(r"^\s*(?P<kind>Labels|Annotations):\{(?P<pairs>.*)\},?\s*$", re.MULTILINE)
_PAIR: Final = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')


class Fired(NamedTuple):
    """An alert as Prometheus sends it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def annotation_files(rule: AlertRule, facts: SampleAlert) -> dict[str, str]:
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


_SEPARATOR: Final = "\x1e"
_ORDER: Final = ("title", "title_link", "text", "fallback", "footer", "color")

_KEPT_EMPTY: Final = frozenset({"text", "fallback", "footer"})
"""Keys that Alertmanager 0.25 sends even if empty; it omits all others."""
_NEVER: Final = "0001-01-01T00:00:00Z"


def message_data(fired: Fired, since: datetime, until: datetime | None, manager: str) -> str:
    """Return the JSON for the templates: *fired*, resolved if it ended at *until*.

    *manager* is Alertmanager's external URL.
    """
    status = "firing" if until is None else "resolved"
    labels = dict(fired.labels)
    alert = {
        "status": status,
        "labels": labels,
        "annotations": dict(fired.annotations),
        "startsAt": since.isoformat(),
        "endsAt": _NEVER if until is None else until.isoformat(),
        "generatorURL": "",
        "fingerprint": "0" * 16,
    }
    return json.dumps(
        {
            "receiver": "preview",
            "status": status,
            "alerts": [alert],
            "groupLabels": {name: labels[name] for name in group_by(labels) if name in labels},
            "commonLabels": labels,
            "commonAnnotations": dict(fired.annotations),
            "externalURL": manager,
        }
    )


def message_parts(config: AlertingConfig) -> tuple[str, dict[str, Any]]:
    """Return the text that amtool renders, and the receiver settings it comes from."""
    settings = Receivers(config).slack_settings()
    texts = [settings[part] for part in _ORDER]
    texts += [action["url"] for action in settings.get("actions", ())]
    return _SEPARATOR.join(texts), settings


def parse_message(output: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON that Slack gets, from amtool's output for `message_parts`."""
    parts = output.removesuffix("\n").split(_SEPARATOR)
    rendered, urls = dict(zip(_ORDER, parts, strict=False)), parts[len(_ORDER) :]
    attachment: dict[str, Any] = {
        name: text for name, text in rendered.items() if text or name in _KEPT_EMPTY
    }
    attachment["callback_id"] = ""
    attachment["mrkdwn_in"] = list(settings["mrkdwn_in"])
    if urls:
        attachment["actions"] = [
            {"type": action["type"], "text": action["text"], "url": url}
            for action, url in zip(settings["actions"], urls, strict=True)
        ]
    message = {"username": settings["username"], "attachments": [attachment]}
    return {"channel": settings["channel"], **message} if "channel" in settings else message


_HEADER = 150
_CODE = "`"


def blocks(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return title, text, footer and buttons as blocks; the colour needs an attachment."""
    [attachment] = message["attachments"]
    title = unescaped(attachment["title"])
    found: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:_HEADER]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": attachment["text"]}},
    ]
    if attachment.get("actions"):
        found.append(
            {
                "type": "actions",
                "elements": [
                    {
                        "type": "button",
                        "text": {"type": "plain_text", "text": action["text"]},
                        "url": action["url"],
                    }
                    for action in attachment["actions"]
                ],
            }
        )
    if attachment["footer"]:
        code = {"type": "mrkdwn", "text": f"{_CODE}{attachment['footer']}{_CODE}"}
        found.append({"type": "context", "elements": [code]})
    return {
        "text": attachment["fallback"],
        "attachments": [{"color": attachment["color"], "blocks": found}],
    }


def unescaped(text: str) -> str:
    """Return *text* as Slack shows it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


_LABEL: Final = re.compile(r"\$labels\.(\w+)")

_LABELS: Final = {
    "sli": "latency",
    "tier": "60s",
    "owner": "streaming",
    "topic": "orders",
    "group": "billing",
    "connector": "MirrorSourceConnector",
    "task": "0",
    "config": "cleanup.policy",
    "side": "source",
    "stage": "end_offsets",
    "reason": "timeout",
    "job": "mm2slo",
    "rule_group": "mm2slo-burn",
    "integration": "slack",
}

_VALUES: Final = {
    "MM2ErrorBudgetBurn": 18.0,
    "MM2ErrorBudgetExhausted": 1.13,
    "MM2SLOCoverageLow": 0.82,
    "MM2RetentionHeadroomLow": 5_400.0,
    "MM2FlowStopped": 1.0,
    "MM2ClusterUnreachable": 1.0,
    "MM2LogsNotShipped": 900.0,
}
_COUNT: Final = 3.0
_LEFT: Final = 0.61


@dataclass(frozen=True, slots=True)
class SampleAlert:
    """Values that an alert fires with; `series` are samples by selector."""

    labels: Mapping[str, str]
    value: float
    series: Mapping[str, float]


def sample_alert(rule: AlertRule, flow: Flow | None = None) -> SampleAlert:
    """Return example values for *rule*, about *flow* if it has one."""
    about = flow or Flow("us", "eu")
    texts = " ".join(rule.annotations.values())
    named = set(_LABEL.findall(texts))
    own = {"flow": about.label, "source": about.source, "target": about.target}
    known = {**_LABELS, **own, "cluster": about.source}
    wanted = set(named)
    if named & set(FLOW_LABELS):
        wanted |= set(FLOW_LABELS)
    if "sli" in named:
        wanted |= {"sli", "tier", "owner"}
    labels = {name: known.get(name, "example") for name in sorted(wanted)}
    value = _VALUES.get(rule.alert, _COUNT)
    chosen = ", ".join(f'{name}="{known[name]}"' for name in SLI_LABELS)
    return SampleAlert(labels, value, {f"{BUDGET_REMAINING.name}{{{chosen}}}": _LEFT})
