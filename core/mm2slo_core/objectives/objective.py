"""What is promised of a flow: the share of good events of an indicator within a window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.sli import SliKey
    from mm2slo_core.topology import Flow

DAY = 86_400.0
"""Seconds."""
DEFAULT_WINDOW = 28 * DAY
"""Four weeks hold the same weekdays wherever they start, so that rolling figures compare."""


class Severity(StrEnum):
    """How an alert reaches people; the value is the label `severity`."""

    PAGE = "page"
    """Somebody is woken: users feel it, and it cannot wait."""
    TICKET = "ticket"
    """Work for the next working day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveRule:
    """One objective as configured: for all flows that match, of one indicator at one tier.

    `flows` are labels such as `us->eu`, with `*` and `?` as wildcards; of several rules for the
    same indicator and flow the first one holds. `target` is a share of 1 and `window` is in
    seconds, always rolling. `worst` is the gravest severity a burning budget may alert with.
    """

    flows: tuple[str, ...]
    key: SliKey
    target: float
    window: float = DEFAULT_WINDOW
    worst: Severity = Severity.TICKET
    owner: str = ""
    channel: str = ""

    def covers(self, flow: Flow) -> bool:
        """Whether one of the patterns matches the flow's label."""
        return any(fnmatchcase(flow.label, pattern) for pattern in self.flows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One promise about one flow."""

    flow: Flow
    key: SliKey
    target: float
    window: float
    worst: Severity
    owner: str
    channel: str

    @property
    def budget(self) -> float:
        """The share of events that may be bad."""
        return 1.0 - self.target


def resolve(
    rules: Iterable[ObjectiveRule], flow: Flow, keys: Iterable[SliKey]
) -> tuple[Objective, ...]:
    """The objectives of *flow* for the indicators *keys* it publishes, in the order of *keys*.

    An indicator that no rule covers has no objective.
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
                    worst=rule.worst,
                    owner=rule.owner,
                    channel=rule.channel,
                )
            )
    return tuple(found)
