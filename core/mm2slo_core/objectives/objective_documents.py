"""Objectives as YAML: OpenSLO v1 documents, and the `slo:` section of mm2slo.yaml.

Source: OpenSLO/OpenSLO, README of v1. An AlertCondition has one lookback window: the long window of
the pair. Severity, owner and channel have no field in OpenSLO and are annotations.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from mm2slo_core.catalogue.flow_metrics import SLI_EVENTS_TOTAL, SLI_GOOD_EVENTS_TOTAL
from mm2slo_core.indicators.sli_counters import ALL
from mm2slo_core.objectives.objective import (
    Objective,
    WindowPair,
    live_pairs,
    shorten_id,
    slo_id,
    slugify,
)
from mm2slo_core.quantity_text import format_duration, percent_text

Document = dict[str, Any]
_SERVICE: Final = "Service"
_SLI: Final = "SLI"
_SLO: Final = "SLO"
_POLICY: Final = "AlertPolicy"
_CONDITION: Final = "AlertCondition"
_TARGET: Final = "AlertNotificationTarget"
_KINDS: Final = (_SERVICE, _SLI, _SLO, _POLICY, _CONDITION, _TARGET)
_DEFAULT_TARGET: Final = "default"


def render_openslo(objectives: Iterable[Objective]) -> str:
    """A Service for each flow, SLI and SLO for each objective, and the policies they refer to."""
    documents: dict[tuple[str, str], Document] = {}
    for objective in objectives:
        for document in _documents(objective):
            documents.setdefault((document["kind"], document["metadata"]["name"]), document)
    ordered = sorted(documents.values(), key=lambda each: _KINDS.index(each["kind"]))
    return yaml.safe_dump_all(ordered, sort_keys=False, allow_unicode=True, width=100)


def _documents(objective: Objective) -> Iterator[Document]:
    service = _service(objective)
    yield service
    name = slo_id(objective.flow, objective.key)
    sli_name = shorten_id(f"{name}-sli")
    title, window = _title(objective), format_duration(objective.window)
    labels = _labels(objective)
    yield _document(
        _SLI,
        sli_name,
        title,
        {"ratioMetric": {
            "counter": True,
            "good": _metric(_selector(SLI_GOOD_EVENTS_TOTAL.name, labels)),
            "total": _metric(_selector(SLI_EVENTS_TOTAL.name, labels)),
        }},
    )  # fmt: skip
    pairs = live_pairs(objective)
    slo = _document(
        _SLO,
        name,
        title,
        {
            "description": f"{percent_text(objective.target)} of {title} events "
            f"must be good over {window}",
            "service": service["metadata"]["name"],
            "indicatorRef": sli_name,
            "timeWindow": [{"duration": window, "isRolling": True}],
            "budgetingMethod": "Occurrences",
            "objectives": [{"displayName": "objective", "target": objective.target}],
            "alertPolicies": [_policy_name(objective, pair) for pair in pairs],
        },
    )
    slo["metadata"]["annotations"] = _annotations(objective)
    yield slo
    for pair in pairs:
        yield from _alert_documents(objective, pair)


def _service(objective: Objective) -> Document:
    flow = objective.flow
    return _document(
        _SERVICE, shorten_id(flow.slug), flow.label, {"description": f"replication {flow}"}
    )


def _alert_documents(objective: Objective, pair: WindowPair) -> Iterator[Document]:
    name = _policy_name(objective, pair)
    target = shorten_id(slugify(objective.channel) or _DEFAULT_TARGET)
    title = f"burn rate of window pair {pair.name}, {format_duration(objective.window)} objective"
    yield _document(
        _POLICY,
        name,
        title,
        {
            "alertWhenNoData": False,
            "alertWhenBreaching": True,
            "alertWhenResolved": True,
            "conditions": [{"conditionRef": name}],
            "notificationTargets": [{"targetRef": target}],
        },
    )
    yield _document(
        _CONDITION,
        name,
        title,
        {
            "severity": pair.severity.value,
            "condition": {
                "kind": "burnrate",
                "op": "gt",
                # Without binary rounding errors.
                "threshold": float(f"{pair.factor(objective.window):.12g}"),
                "lookbackWindow": format_duration(pair.long),
                "alertAfter": format_duration(pair.hold),
            },
        },
    )
    yield _document(
        _TARGET, target, objective.channel or _DEFAULT_TARGET, {"target": "alertmanager"}
    )


def _document(kind: str, name: str, title: str, spec: Document) -> Document:
    return {
        "apiVersion": "openslo/v1",
        "kind": kind,
        "metadata": {"name": name, "displayName": title},
        "spec": spec,
    }


def _metric(query: str) -> Document:
    return {"metricSource": {"type": "Prometheus", "spec": {"query": query}}}


def _labels(objective: Objective) -> dict[str, str]:
    key = objective.key
    return {"flow": objective.flow.label, "sli": key.sli.value, "tier": key.tier}


def _selector(name: str, labels: Mapping[str, str]) -> str:
    """`name{label="value"}`. Raises ValueError for a value that would need escaping."""
    for value in labels.values():
        if set(value) & set('"\\\n'):
            raise ValueError(f"label value {value!r}: expected text without quotes and backslashes")
    matchers = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{matchers}}}"


def _annotations(objective: Objective) -> dict[str, str]:
    values = {
        "mm2slo/max_severity": objective.max_severity.value,
        "mm2slo/owner": objective.owner,
        "mm2slo/channel": objective.channel,
    }
    return {name: value for name, value in values.items() if value}


def _policy_name(objective: Objective, pair: WindowPair) -> str:
    """One policy for each pair, window and channel."""
    parts = ("burn", pair.name, format_duration(objective.window), slugify(objective.channel))
    return shorten_id("-".join(part for part in parts if part))


def _title(objective: Objective) -> str:
    key = objective.key
    return f"{objective.flow.label} {key.sli}" + ("" if key.tier == ALL else f" {key.tier}")


def render_slo_section(objectives: Iterable[Objective]) -> str:
    """YAML with one entry for each flow and indicator."""
    entries = [_entry(each) for each in objectives]
    return yaml.safe_dump(
        {"slo": {"objectives": entries}}, sort_keys=False, allow_unicode=True, width=100
    )


def _entry(objective: Objective) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "flows": [objective.flow.label],
        "sli": objective.key.sli.value,
        "tier": None if objective.key.tier == ALL else objective.key.tier,
        "target": percent_text(objective.target),
        "window": format_duration(objective.window),
        "max_severity": objective.max_severity.value,
        "owner": objective.owner or None,
        "channel": objective.channel or None,
    }
    return {key: value for key, value in entry.items() if value is not None}
