"""Sample indicators, and a reference history to compare the store with."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import STEP_MS, Indicator, SpanCounts, Tally
from mm2slo_core.topology import Flow
from mm2slo_store.store import Store

HOUR = 3_600_000
START = 1_790_000_000_000 // HOUR * HOUR
"""The first hour of these histories."""
UP = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
SLOW = Indicator(Flow("us", "eu"), SliKey(Sli.LATENCY, "10s"))
BACK = Indicator(Flow("eu", "us"), SliKey(Sli.AVAILABILITY))


def at(step: int) -> int:
    """The start of a step of these histories."""
    return START + step * STEP_MS


def span(start: int, end: int) -> Span:
    """From one step to another."""
    return Span(at(start), at(end))


@dataclass
class ReferenceHistory:
    """A store, and the same steps in memory."""

    store: Store
    steps: dict[Indicator, dict[int, Tally]] = field(default_factory=lambda: defaultdict(dict))

    def record(self, step: int, counts: Mapping[Indicator, Tally]) -> None:
        """Record the step that starts at *step*."""
        for each, tally in counts.items():
            self.steps[each][at(step + 1)] = tally
        self.store.record_step(at(step + 1), counts)

    def truth(self, indicator: Indicator, *spans: Span) -> tuple[SpanCounts, ...]:
        """The expected sums, step by step."""
        return tuple(self._sum(indicator, each) for each in spans)

    def _sum(self, indicator: Indicator, span: Span) -> SpanCounts:
        found = SpanCounts()
        for end, (good, total, unknown) in self.steps[indicator].items():
            if span.start < end <= span.end:
                found += SpanCounts(good=good, total=total, unknown=unknown, minutes=5)
        return found

    def stored(self, indicator: Indicator, *spans: Span) -> tuple[SpanCounts, ...]:
        """The counts from the store."""
        return self.store.span_counts([indicator], spans)[indicator]
