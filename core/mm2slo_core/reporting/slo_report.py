"""`Report`, `Detail` and `History`: the results of the report service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.budget_series import Step
    from mm2slo_core.reporting.report_entry import Day, Entry, Incident, ReportWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Entries, the worst first.

    `window` is None if each entry has the window of its objective. `source` is the source of
    history. `zone` is the IANA time zone of days and months.
    """

    as_of: int
    source: str
    zone: str
    window: ReportWindow | None
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """The largest costs of the budget of one entry."""

    entry: Entry
    days: tuple[Day, ...]
    incidents: tuple[Incident, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The history of an indicator over [start, end), in steps of `length` ms, as of `as_of`."""

    objective: Objective
    as_of: int
    start: int
    end: int
    length: int
    steps: tuple[Step, ...]
