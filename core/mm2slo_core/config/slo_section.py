"""Renders objectives as the `slo:` section of mm2slo.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from mm2slo_core.objectives.quantity_text import percent_text, shorthand
from mm2slo_core.sli_counters import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.objectives.objective import Objective


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
        "window": shorthand(objective.window),
        "max_severity": objective.max_severity.value,
        "owner": objective.owner or None,
        "channel": objective.channel or None,
    }
    return {key: value for key, value in entry.items() if value is not None}
