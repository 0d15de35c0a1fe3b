"""Reports to build digests of, and an in-memory store of digest claims."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.error_budget import Reason, Status
from mm2slo_core.objectives.objective import Objective, Severity, slo_id
from mm2slo_core.reporting.report_entry import (
    BudgetReading,
    Confirmation,
    Coverage,
    Entry,
    Incident,
    PeriodComparison,
    ReportWindow,
    worst_first,
)
from mm2slo_core.reporting.report_query import parse_period
from mm2slo_core.reporting.slo_report import EntryDetail, Report
from mm2slo_core.reporting.step_counts import SpanCounts
from mm2slo_core.topology import Flow


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    """Epoch ms of a time in UTC."""
    return round(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


NOW = at(2026, 7, 20, 7)
"""A Monday, 09:00 in Berlin."""


def window(text: str = "7d", now: int = NOW) -> ReportWindow:
    """The period *text* at *now*, in UTC."""
    return parse_period(text, now, UTC)


def entry(  # noqa: PLR0913 - one parameter per figure that a test sets
    flow: Flow,
    sli: Sli = Sli.AVAILABILITY,
    *,
    tier: str = "all",
    target: float = 0.999,
    good: float = 10_000.0,
    bad: float = 0.0,
    before: float | None = None,
    status: Status | None = None,
    reason: Reason | None = None,
    confirmation: Confirmation | None = None,
    exhaustion: float | None = None,
    coverage: float = 1.0,
    errors: tuple[str, ...] = (),
    since: int = 0,
) -> Entry:
    """A report entry; its status follows from the budget unless it is given."""
    over = window()
    objective = Objective(
        flow=flow,
        key=SliKey(sli, tier),
        target=target,
        window=over.seconds,
        max_severity=Severity.PAGE,
        owner="",
        channel="",
    )
    total = good + bad
    consumed = None if total == 0 else bad / total / (1 - target)
    remaining = None if consumed is None else 1 - consumed
    found, why = Status.MET, Reason.WITHIN_BUDGET
    if remaining is None:
        found, why = Status.NO_DATA, Reason.NO_SAMPLES
    elif remaining <= 0:
        found, why = Status.BREACHED, Reason.EXHAUSTED
    comparison = None
    if before is not None:
        ratio = 1 - (1 - before) * (1 - target)
        comparison = PeriodComparison(
            start=over.start - 1, end=over.start, ratio=ratio, remaining=before, coverage=1.0
        )
    return Entry(
        id=slo_id(flow, objective.key),
        objective=objective,
        window=over,
        as_of=over.end,
        status=status or found,
        reason=reason or why,
        stale_since=None,
        pair="",
        counts=SpanCounts(good=good, total=total),
        excluded=SpanCounts(),
        ratio=None if total == 0 else good / total,
        budget=BudgetReading(
            total=1 - target,
            consumed=consumed,
            remaining=remaining,
            seconds=over.seconds,
            total_events=(1 - target) * total,
            remaining_events=(1 - target) * total - bad,
            total_seconds=0.0,
            total_minutes=0.0,
            remaining_minutes=None,
            minutes_are_estimate=True,
        ),
        burn_rates={},
        exhaustion_seconds=exhaustion,
        projected_remaining=None,
        pairs=(),
        coverage=Coverage(
            window=coverage, hour=1.0, minutes=1, expected_minutes=1, known_since=since
        ),
        before=comparison,
        confirmation=confirmation,
        errors=errors,
    )


def report(
    entries: Iterable[Entry],
    *,
    over: ReportWindow | None = None,
    warnings: tuple[str, ...] = (),
    now: int = NOW,
) -> Report:
    """A report of *entries* over 7 days."""
    return Report(
        as_of=now,
        source="recorder",
        zone="Europe/Berlin",
        window=over or window(),
        entries=worst_first(entries),
        warnings=warnings,
    )


def detail(about: Entry, *incidents: Incident) -> EntryDetail:
    """Details of one entry."""
    return EntryDetail(entry=about, days=(), incidents=incidents)


def texts(blocks: Sequence[object]) -> list[str]:
    """Every text in *blocks*."""
    found: list[str] = []
    for block in blocks:
        assert isinstance(block, dict)
        for each in [block["text"]] if "text" in block else block.get("elements", []):
            found.append(each["text"])  # noqa: PERF401 - two loops read better apart
    return found
