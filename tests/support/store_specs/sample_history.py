"""Sample indicators, and a reference history to compare the store with."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from minute_history import Minutes

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Indicator, Tally
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.reporting.minute_counts import SpanCounts
    from mm2slo_store import Store

HOUR = 3_600_000
START = 1_790_000_000_000 // HOUR * HOUR
"""The first hour of these histories."""
UP = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
SLOW = Indicator(Flow("us", "eu"), SliKey(Sli.LATENCY, "10s"))
BACK = Indicator(Flow("eu", "us"), SliKey(Sli.AVAILABILITY))


def at(minute: int) -> int:
    """The start of a minute of these histories."""
    return START + minute * MINUTE_MS


def span(start: int, end: int) -> Span:
    """From one minute to another."""
    return Span(at(start), at(end))


@dataclass
class ReferenceHistory:
    """A store, and the same minutes in memory."""

    store: Store
    minutes: dict[Indicator, Minutes] = field(default_factory=lambda: defaultdict(Minutes))
    tallies: dict[Indicator, Tally] = field(default_factory=lambda: defaultdict(Tally))

    def minute(self, number: int, growths: Mapping[Indicator, tuple[float, float, float]]) -> None:
        """What indicators counted in a minute: good, bad, unknown."""
        for each, (good, bad, unknown) in growths.items():
            self.minutes[each].put(at(number), good, bad, unknown)
            before = self.tallies[each]
            self.tallies[each] = Tally(
                before.good + good, before.total + good + bad, before.unknown + unknown
            )
        self.store.record_minute(at(number), self.tallies, set(growths))

    def steady(
        self, start: int, end: int, growth: tuple[float, float, float], *those: Indicator
    ) -> None:
        """The same in every minute."""
        for number in range(start, end):
            self.minute(number, dict.fromkeys(those, growth))

    def truth(self, indicator: Indicator, *spans: Span) -> tuple[SpanCounts, ...]:
        """The expected sums over the minutes."""
        return tuple(self.minutes[indicator].count(each) for each in spans)

    def stored(self, indicator: Indicator, *spans: Span) -> tuple[SpanCounts, ...]:
        """The counts from the store."""
        return self.store.span_counts([indicator], spans)[indicator]
