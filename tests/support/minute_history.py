"""Minute counts in memory, and answers from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.objective import Objective, Severity
from mm2slo_core.reporting.entry_evaluation import IndicatorData
from mm2slo_core.reporting.report_entry import Confirmation
from mm2slo_core.reporting.step_counts import (
    MINUTE_MS,
    Indicator,
    SpanCounts,
    StepCounts,
    count_span,
)
from mm2slo_core.topology import Flow

DAY = 86_400.0
DAY_MS = 86_400_000
FLOW = Flow("us", "eu")
AVAILABILITY = SliKey(Sli.AVAILABILITY)


def ms(text: str) -> int:
    """Epoch ms of an ISO 8601 time."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@dataclass
class Minutes:
    """Counts of one indicator by minute."""

    counted: dict[int, tuple[float, float, float]] = field(default_factory=dict)

    def put(self, at: int, good: float, bad: float = 0.0, unknown: float = 0.0) -> None:
        """Set one minute."""
        self.counted[at] = (good, good + bad, unknown)

    def steady(self, start: int, end: int, good: float = 60.0, bad: float = 0.0) -> None:
        """The same in every minute of [start, end)."""
        for at in range(start, end, MINUTE_MS):
            self.put(at, good, bad)

    def within(self, span: Span) -> list[StepCounts]:
        """The reference that faster sources are compared with."""
        return [
            StepCounts(at, *figures)
            for at, figures in sorted(self.counted.items())
            if span.start <= at < span.end
        ]

    def count(self, span: Span) -> SpanCounts:
        """The sum over *span*."""
        return count_span(self.within(span), span)

    def answer(
        self, spans: Sequence[Span], confirmation: Confirmation | None = None
    ) -> IndicatorData:
        """An answer as from an SLI source."""
        end = max(each.end for each in spans)
        return IndicatorData(
            counts={span: self.count(span) for span in spans},
            known_since=min(self.counted, default=None),
            last_seen=max((at + MINUTE_MS for at in self.counted if at < end), default=None),
            confirmation=confirmation,
        )


def objective(
    target: float = 0.99,
    *,
    flow: Flow = FLOW,
    key: SliKey = AVAILABILITY,
    window: float = 28 * DAY,
    max_severity: Severity = Severity.PAGE,
) -> Objective:
    """An objective with defaults."""
    return Objective(
        flow=flow,
        key=key,
        target=target,
        window=window,
        max_severity=max_severity,
        owner="",
        channel="",
    )


def indicator(of: Objective) -> Indicator:
    """The indicator of an objective."""
    return Indicator(of.flow, of.key)
