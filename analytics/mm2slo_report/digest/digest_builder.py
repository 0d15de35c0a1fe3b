"""Builds the digest of a period from the report service's figures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from mm2slo_core.reporting.report_entry import WindowKind
from mm2slo_core.reporting.report_periods import resolve_relative_period
from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.slack_message import build_message
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.reporting.slo_report import Report
    from mm2slo_report.digest.report_links import ReportLinks
    from mm2slo_report.digest.slack_message import Message
    from mm2slo_report.reporter import Reporter

_DAY_MS: Final = 86_400_000
_MAX_DETAILS: Final = 5
"""Objectives whose incidents are looked up: those that spent most of their budgets."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A message, and the period it is posted once for."""

    message: Message
    period: str


@dataclass(frozen=True, slots=True)
class DigestBuilder:
    """Builds digests over `period`, such as `7d`, `2026-07` or `last-month`."""

    reporter: Reporter
    period: str
    links: ReportLinks

    def build(self) -> Digest:
        """The digest as of now. Raises UserError for an invalid period or without figures."""
        as_of = self.reporter.instant(None)
        over = resolve_relative_period(self.period, as_of, self.reporter.zone)
        try:
            report = self.reporter.report(at=as_of, over=over)
        except ValueError as error:
            raise UserError(str(error)) from None
        except SliSourceError as problem:
            raise UserError(f"no figures for the digest: {problem}") from None
        details, warnings = [], list(report.warnings)
        for each in _costliest(report):
            try:
                details.append(self.reporter.detail(each.id, at=as_of, over=over))
            except SliSourceError as problem:
                warnings.append(f"incidents of {each.id} could not be read: {problem}")
        message = build_message(replace(report, warnings=tuple(warnings)), details, self.links)
        return Digest(message, period_key(report))


def period_key(report: Report) -> str:
    """The key under which a digest is posted once per channel.

    `2026-07` for a finished calendar period, `7d to 2026-07-20` for others.
    Rolling periods shorter than a day change at multiples of their length since the epoch.
    """
    window = report.window
    at = report.as_of if window is None else window.end
    day = datetime.fromtimestamp(at / 1000, ZoneInfo(report.zone)).date()
    if window is None:
        return f"own windows to {day}"
    length = window.end - window.start
    if window.kind is WindowKind.CALENDAR:
        is_finished = length >= round(window.seconds * 1000)
        return window.name if is_finished else f"{window.name} to {day}"
    if length >= _DAY_MS:
        return f"{window.name} to {day}"
    started = datetime.fromtimestamp((at - at % length) / 1000, UTC)
    return f"{window.name} from {started:%Y-%m-%dT%H:%MZ}"


def _costliest(report: Report) -> list[Entry]:
    spending = [each for each in report.entries if each.counts.bad > 0 and not each.errors]
    return sorted(spending, key=lambda each: -(each.budget.consumed or 0.0))[:_MAX_DETAILS]
