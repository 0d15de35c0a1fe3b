"""A history by the minute in memory, and the answers it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from mm2slo_core.objectives import Objective, Severity
from mm2slo_core.reporting.evaluate import Answer
from mm2slo_core.reporting.history import MINUTE_MS, Indicator, MinuteCounts, SpanCounts, counted
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.entry import Confirmation

DAY = 86_400.0
DAY_MS = 86_400_000
FLOW = Flow("us", "eu")
AVAILABILITY = SliKey(Sli.AVAILABILITY)


def ms(text: str) -> int:
    """Epoch ms of a time by ISO 8601."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@dataclass
class Minutes:
    """What one indicator counted in each minute that holds a sample."""

    counted: dict[int, tuple[float, float, float]] = field(default_factory=dict)

    def put(self, at: int, good: float, bad: float = 0.0, unknown: float = 0.0) -> None:
        """One minute."""
        self.counted[at] = (good, good + bad, unknown)

    def steady(self, start: int, end: int, good: float = 60.0, bad: float = 0.0) -> None:
        """The same in every minute of [start, end)."""
        for at in range(start, end, MINUTE_MS):
            self.put(at, good, bad)

    def within(self, span: Span) -> list[MinuteCounts]:
        """One by one: the truth that faster sources are compared with."""
        return [
            MinuteCounts(at, *figures)
            for at, figures in sorted(self.counted.items())
            if span.start <= at < span.end
        ]

    def count(self, span: Span) -> SpanCounts:
        """The sum of them."""
        return counted(self.within(span), span)

    def answer(self, spans: Sequence[Span], confirmation: Confirmation | None = None) -> Answer:
        """As a source gives it."""
        return Answer(
            counts={span: self.count(span) for span in spans},
            known_since=min(self.counted, default=None),
            confirmation=confirmation,
        )


def objective(
    target: float = 0.99,
    *,
    flow: Flow = FLOW,
    key: SliKey = AVAILABILITY,
    window: float = 28 * DAY,
    worst: Severity = Severity.PAGE,
) -> Objective:
    """An objective."""
    return Objective(
        flow=flow, key=key, target=target, window=window, worst=worst, owner="", channel=""
    )


def indicator(promised: Objective) -> Indicator:
    """What it is about."""
    return Indicator(promised.flow, promised.key)
