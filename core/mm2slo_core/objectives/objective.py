"""Objectives: the share of good events that an indicator must reach over a window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.sli_counters import SliKey
    from mm2slo_core.topology import Flow

DAY = 86_400.0
"""Seconds."""
DEFAULT_WINDOW = 28 * DAY
"""Four weeks contain the same weekdays wherever they start, so that rolling values compare."""


class Severity(StrEnum):
    """The severity of an alert, and value of the label `severity`."""

    PAGE = "page"
    """Notify on-call immediately."""
    TICKET = "ticket"
    """Handle within working hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveRule:
    """An objective as configured: for one indicator and tier of all matching flows.

    `flows` are labels such as `us->eu`, with `*` and `?` as wildcards; the first matching rule
    applies. `target` is a share of 1. `window` is rolling and in seconds. `max_severity` is the
    highest severity of its alerts.
    """

    flows: tuple[str, ...]
    key: SliKey
    target: float
    window: float = DEFAULT_WINDOW
    max_severity: Severity = Severity.TICKET
    owner: str = ""
    channel: str = ""

    def covers(self, flow: Flow) -> bool:
        """Whether one of the patterns matches the label of *flow*."""
        return any(fnmatchcase(flow.label, pattern) for pattern in self.flows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The effective objective of one flow and indicator."""

    flow: Flow
    key: SliKey
    target: float
    window: float
    max_severity: Severity
    owner: str
    channel: str

    @property
    def budget(self) -> float:
        """The share of events that may be bad."""
        return 1.0 - self.target


def resolve(
    rules: Iterable[ObjectiveRule], flow: Flow, keys: Iterable[SliKey]
) -> tuple[Objective, ...]:
    """The objectives of *flow* for the indicators *keys*, in the order of *keys*.

    An indicator without a matching rule has no objective.
    """
    ordered = tuple(rules)
    found = []
    for key in keys:
        rule = next((each for each in ordered if each.key == key and each.covers(flow)), None)
        if rule is not None:
            found.append(
                Objective(
                    flow=flow,
                    key=key,
                    target=rule.target,
                    window=rule.window,
                    max_severity=rule.max_severity,
                    owner=rule.owner,
                    channel=rule.channel,
                )
            )
    return tuple(found)
