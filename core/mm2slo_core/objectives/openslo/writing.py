"""Objectives as OpenSLO documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from mm2slo_core.objectives.figures import percent_text, shorthand
from mm2slo_core.objectives.ids import shortened, slo_id, slug
from mm2slo_core.objectives.openslo import words
from mm2slo_core.objectives.selectors import GOOD, TOTAL, labels_of, selector
from mm2slo_core.objectives.traffic import live_pairs
from mm2slo_core.sli import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_core.objectives.objective import Objective
    from mm2slo_core.objectives.pairs import BurnPair

    Document = dict[str, Any]


def write(objectives: Iterable[Objective]) -> str:
    """A Service for each flow, SLI and SLO for each objective, and the policies they refer to."""
    documents: dict[tuple[str, str], Document] = {}
    for objective in objectives:
        for document in _documents(objective):
            documents.setdefault((document["kind"], document["metadata"]["name"]), document)
    ordered = sorted(documents.values(), key=lambda each: words.KINDS.index(each["kind"]))
    return yaml.safe_dump_all(ordered, sort_keys=False, allow_unicode=True, width=100)


def _documents(objective: Objective) -> Iterator[Document]:
    service = _service(objective)
    yield service
    name = slo_id(objective.flow, objective.key)
    labels = labels_of(objective.flow, objective.key)
    yield _document(
        words.SLI,
        shortened(f"{name}-sli"),
        _title(objective),
        {"ratioMetric": {
            "counter": True,
            "good": _metric(selector(GOOD, labels)),
            "total": _metric(selector(TOTAL, labels)),
        }},
    )  # fmt: skip
    pairs = live_pairs(objective)
    slo = _document(
        words.SLO,
        name,
        _title(objective),
        {
            "description": f"{percent_text(objective.target)} of the events of "
            f"{_title(objective)} are good within {shorthand(objective.window)}",
            "service": service["metadata"]["name"],
            "indicatorRef": shortened(f"{name}-sli"),
            "timeWindow": [{"duration": shorthand(objective.window), "isRolling": True}],
            "budgetingMethod": "Occurrences",
            "objectives": [{"displayName": "promised", "target": objective.target}],
            "alertPolicies": [
                words.policy_name(pair, objective.window, objective.channel) for pair in pairs
            ],
        },
    )
    slo["metadata"]["annotations"] = _annotations(objective)
    yield slo
    for pair in pairs:
        yield from _alerting(objective, pair)


def _service(objective: Objective) -> Document:
    flow = objective.flow
    return _document(
        words.SERVICE, shortened(flow.slug), flow.label, {"description": f"replication {flow}"}
    )


def _alerting(objective: Objective, pair: BurnPair) -> Iterator[Document]:
    name = words.policy_name(pair, objective.window, objective.channel)
    target = shortened(slug(objective.channel) or words.DEFAULT_TARGET)
    title = f"budget burns: pair {pair.name} of {shorthand(objective.window)}"
    yield _document(
        words.POLICY,
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
        words.CONDITION,
        name,
        title,
        {
            "severity": pair.severity.value,
            "condition": {
                "kind": "burnrate",
                "op": "gt",
                "threshold": words.threshold(pair, objective.window),
                "lookbackWindow": shorthand(pair.long),
                "alertAfter": shorthand(pair.hold),
            },
        },
    )
    yield _document(
        words.TARGET, target, objective.channel or words.DEFAULT_TARGET, {"target": "alertmanager"}
    )


def _document(kind: str, name: str, title: str, spec: Document) -> Document:
    return {
        "apiVersion": words.API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "displayName": title},
        "spec": spec,
    }


def _metric(query: str) -> Document:
    return {"metricSource": {"type": "Prometheus", "spec": {"query": query}}}


def _annotations(objective: Objective) -> dict[str, str]:
    values = (objective.worst.value, objective.owner, objective.channel)
    return {name: value for name, value in zip(words.ANNOTATIONS, values, strict=True) if value}


def _title(objective: Objective) -> str:
    key = objective.key
    return f"{objective.flow.label} {key.sli}" + ("" if key.tier == ALL else f" {key.tier}")
