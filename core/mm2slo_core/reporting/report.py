"""A report: entries as of one instant, with where their figures come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.entry import Entry, Incident, ReportWindow
    from mm2slo_core.reporting.incidents import Day
    from mm2slo_core.reporting.series import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Entries, the worst first.

    `window` is None where each entry has its objective's own; `source` names where the history
    comes from. `zone` is the IANA name of the time zone that days and months are of.
    """

    as_of: int
    source: str
    zone: str
    window: ReportWindow | None
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What cost most of one entry's budget."""

    entry: Entry
    days: tuple[Day, ...]
    incidents: tuple[Incident, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """How an indicator went over [start, end), by steps of `length` ms, known at `as_of`."""

    objective: Objective
    as_of: int
    start: int
    end: int
    length: int
    steps: tuple[Step, ...]
