"""The rule file of planned maintenance: one series per flow, there while an exclusion is active.

The times stand in the expressions, so that the file can be written ahead and changes only when
exclusions do. The rules of burn rates take out what falls into the series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.model import PRODUCTION, Group, RecordingRule, Scale
from mm2slo_alerts.render import HEADER, prometheus_text
from mm2slo_core.catalogue.recorded import MAINTENANCE_ACTIVE
from mm2slo_core.objectives.exclusion import excluded_from_rules
from mm2slo_core.objectives.objective import DEFAULT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.objectives.exclusion import Exclusion, Span
    from mm2slo_core.topology import Flow

INTERVAL: Final = 30.0
"""Seconds between two evaluations: what an exclusion's start and end are rounded up to."""
_NOTE: Final = "# Written by `mm2slo exclude` from the results store; do not edit.\n"


def groups(
    exclusions: Iterable[Exclusion],
    flows: Iterable[Flow],
    now: int | None = None,
    *,
    window: float = DEFAULT_WINDOW,
    scale: Scale = PRODUCTION,
) -> tuple[Group, ...]:
    """One group with a rule for each of *flows* that has something to exclude; else none.

    With *now* (epoch ms) what ended more than *window* seconds before is left out; give the
    longest window of the objectives. Exclusions of one flow share a rule, because two rules that
    record one series would end each other's samples. *scale* shortens the interval, not the times.
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
    """The rule file of *found*; one without groups is a file that Prometheus loads as well."""
    return _NOTE + prometheus_text(found).removeprefix(HEADER)


def _during(spans: Sequence[Span]) -> str:
    """1 within one of *spans*, no sample outside of them."""
    either = "\n  or ".join(
        f"vector(time()) >= {_seconds(span.start)} < {_seconds(span.end)}" for span in spans
    )
    return f"vector(1) and (\n  {either}\n)"


def _seconds(epoch_ms: int) -> str:
    """Exact, and without an exponent."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return f"{seconds}.{milliseconds:03}".rstrip("0").rstrip(".") if milliseconds else f"{seconds}"
