"""From the reporter to Slack: the report of a period, worded, and posted once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_core.user_errors import UserError
from mm2slo_core.reporting.finished import finished
from mm2slo_report.digest.instance import instance
from mm2slo_report.digest.message import digest
from mm2slo_report.sources.port import SliSourceError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.reporting.report import Detail, Report
    from mm2slo_report.digest.links import Links
    from mm2slo_report.digest.message import Message

_DETAILED: Final = 5
"""Objectives that are looked into for what cost most."""


class Reporting(Protocol):
    """What a digest asks of a reporter."""

    @property
    def zone(self) -> ZoneInfo:
        """Of days and months."""

    def instant(self, at: int | None) -> int:
        """The whole minute that an answer speaks of."""

    def report(self, *, at: int | None = None, over: str | None = None) -> Report:
        """Every objective. Raises ValueError, SliSourceError."""

    def detail(self, slo: str, *, at: int | None = None, over: str | None = None) -> Detail:
        """What cost most of one. Raises SliSourceError."""


@dataclass(frozen=True, slots=True)
class Worded:
    """A message, and the name under which it is posted once."""

    message: Message
    period: str


@dataclass(frozen=True, slots=True)
class Wording:
    """Messages of *reporter*'s reports over `period`: `7d`, `2026-07`, `last-month`."""

    reporter: Reporting
    period: str
    links: Links

    def worded(self) -> Worded:
        """As of now. Raises UserError for a bad period, or without figures."""
        as_of = self.reporter.instant(None)
        over = finished(self.period, as_of, self.reporter.zone)
        try:
            report = self.reporter.report(at=as_of, over=over)
        except ValueError as error:
            raise UserError(str(error)) from None
        except SliSourceError as problem:
            raise UserError(f"there are no figures for a digest: {problem}") from None
        details, untold = [], list(report.warnings)
        for each in _costly(report):
            try:
                details.append(self.reporter.detail(each.id, at=as_of, over=over))
            except SliSourceError as problem:
                untold.append(f"what cost most of {each.id} is not known: {problem}")
        told = replace(report, warnings=tuple(untold))
        return Worded(digest(told, details, self.links), instance(report))


def _costly(report: Report) -> list[Entry]:
    """Those that spent most of their budget."""
    spending = [each for each in report.entries if each.counts.bad > 0 and not each.errors]
    return sorted(spending, key=lambda each: -(each.budget.consumed or 0.0))[:_DETAILED]
