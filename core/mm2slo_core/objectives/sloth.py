"""Objectives as Sloth's `prometheus/v1`: one document for each flow.

Source: slok/sloth, pkg/prometheus/api/v1. The window is no part of it: Sloth takes one for all,
by `--default-slo-period`, so objectives of other windows cannot be exported together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from mm2slo_core.errors import UserError
from mm2slo_core.objectives.figures import percent, percent_text, shorthand
from mm2slo_core.objectives.ids import shortened, slo_id
from mm2slo_core.objectives.objective import Severity
from mm2slo_core.objectives.selectors import GOOD, TOTAL, labels_of, selector
from mm2slo_core.sli import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.objectives.objective import Objective
    from mm2slo_core.topology import Flow

_WINDOW = "[{{.window}}]"
_BY = "flow, source, target, sli, tier"


def write(objectives: Iterable[Objective]) -> str:
    """One document for each flow.

    Raises UserError when the objectives have different windows.
    """
    known = tuple(objectives)
    windows = sorted({each.window for each in known})
    if len(windows) > 1:
        raise UserError(
            f"Sloth has one window for all objectives, and these have "
            f"{', '.join(map(shorthand, windows))}: expected one window; "
            "export the flows apart, or set slo.window alone"
        )
    by_flow: dict[Flow, list[Objective]] = {}
    for each in known:
        by_flow.setdefault(each.flow, []).append(each)
    head = f"# sloth generate --default-slo-period={shorthand(windows[0])}\n" if windows else ""
    documents = [_document(flow, found) for flow, found in by_flow.items()]
    return head + yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=1000)


def _document(flow: Flow, objectives: Iterable[Objective]) -> dict[str, Any]:
    return {
        "version": "prometheus/v1",
        "service": shortened(flow.slug),
        "labels": {"source": flow.source, "target": flow.target},
        "slos": [_slo(each) for each in objectives],
    }


def _slo(objective: Objective) -> dict[str, Any]:
    key = objective.key
    labels = labels_of(objective.flow, key)
    given = {"owner": objective.owner, "channel": objective.channel}
    tier = "" if key.tier == ALL else f" {key.tier}"
    total, good = (_pooled(selector(name, labels)) for name in (TOTAL, GOOD))
    page = objective.worst is Severity.PAGE
    return {
        "name": slo_id(objective.flow, key).removeprefix(f"{objective.flow.slug}-"),
        "objective": float(percent(objective.target)),
        "description": f"{percent_text(objective.target)} of {key.sli}{tier} events are good",
        "labels": {**labels, **{name: value for name, value in given.items() if value}},
        "sli": {"events": {"error_query": f"{total} - {good}", "total_query": total}},
        "alerting": {
            "name": "MM2SlothErrorBudgetBurn",
            "page_alert": {"labels": {"severity": "page"}} if page else {"disable": True},
            "ticket_alert": {"labels": {"severity": "ticket"}},
        },
    }


def _pooled(series: str) -> str:
    """The average over the exporter's replicas, so that no event counts twice."""
    return f"sum(avg by ({_BY}) (increase({series}{_WINDOW})))"
