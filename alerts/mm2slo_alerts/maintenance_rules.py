"""The rule file of planned maintenance: one series per flow while an exclusion is active.

The expressions hold the times, so the file can be written in advance and changes only when
exclusions do. Burn rates leave out the time of the series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.rule_model import PRODUCTION, Group, RecordingRule, Scale
from mm2slo_alerts.rule_text import HEADER, prometheus_text
from mm2slo_core.catalogue.recorded_series import MAINTENANCE_ACTIVE
from mm2slo_core.objectives.exclusion import excluded_from_rules
from mm2slo_core.objectives.objective import DEFAULT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.objectives.exclusion import Exclusion, Span
    from mm2slo_core.topology import Flow

INTERVAL: Final = 30.0
"""Seconds between two evaluations; start and end of an exclusion are rounded up to it."""
_NOTE: Final = "# Written by `mm2slo exclude` from the results store; do not edit.\n"


def groups(
    exclusions: Iterable[Exclusion],
    flows: Iterable[Flow],
    now: int | None = None,
    *,
    window: float = DEFAULT_WINDOW,
    scale: Scale = PRODUCTION,
) -> tuple[Group, ...]:
    """Return one group with a rule per excluded flow of *flows*; no group without an exclusion.

    With *now* (epoch ms), exclusions that ended more than *window* seconds ago are left out; pass
    the longest window of the objectives. Exclusions of one flow share a rule: two rules that record
    the same series would make each other's samples stale. *scale* shortens the interval only.
    """
    known = tuple(exclusions)
    oldest = None if now is None else now - round(window * 1000)
    rules = []
    for flow in sorted(flows):
        spans = [
            span for span in excluded_from_rules(known, flow) if oldest is None or span.end > oldest
        ]
        if spans:
            rules.append(
                RecordingRule(
                    record=MAINTENANCE_ACTIVE.name,
                    expr=_during(spans),
                    labels={"flow": flow.label, "source": flow.source, "target": flow.target},
                )
            )
    if not rules:
        return ()
    return (Group(name="mm2slo-maintenance", interval=scale(INTERVAL), rules=tuple(rules)),)


def text(found: Iterable[Group]) -> str:
    """Return the rule file of *found*; Prometheus also loads one without groups."""
    return _NOTE + prometheus_text(found).removeprefix(HEADER)


def _during(spans: Sequence[Span]) -> str:
    either = "\n  or ".join(
        f"vector(time()) >= {_seconds(span.start)} < {_seconds(span.end)}" for span in spans
    )
    return f"vector(1) and (\n  {either}\n)"


def _seconds(epoch_ms: int) -> str:
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return f"{seconds}.{milliseconds:03}".rstrip("0").rstrip(".") if milliseconds else f"{seconds}"
