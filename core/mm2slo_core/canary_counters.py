"""What was settled of canaries: indicators, fates, latencies; which one it was, a ledger knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.canary_rules import AFFINITY, COMPLETENESS, ORDER, UNIQUENESS, CanaryTotals
from mm2slo_core.sli_counters import BAD, GOOD, UNKNOWN, SliCount, SliCounters, SliKey

if TYPE_CHECKING:
    from mm2slo_core.canary_rules import CanaryRules


class CanaryCounters:
    """Counters of one ledger; each method settles something of one canary."""

    __slots__ = ("_counters", "_latencies", "_newest_in", "_rules", "totals")

    def __init__(self, rules: CanaryRules) -> None:
        self._rules = rules
        self._counters = SliCounters(rules.indicators)
        self._latencies: list[float] = []
        self._newest_in: dict[int, int] = {}
        self.totals = CanaryTotals()

    @property
    def counters(self) -> dict[SliKey, SliCount]:
        """Good, total and unknown events of each indicator, there from the start at 0."""
        return self._counters.snapshot()

    def take_latencies(self) -> list[float]:
        """Latencies in seconds observed since the last call."""
        taken, self._latencies = self._latencies, []
        return taken

    def came_again(self) -> None:
        """A further arrival."""
        self.totals.duplicates += 1
        self._settle(UNIQUENESS, BAD)

    def came(self) -> None:
        """A first arrival."""
        self.totals.received += 1
        self._settle(UNIQUENESS, GOOD)

    def latency(self, seconds: float) -> None:
        """How long a first arrival took."""
        self._latencies.append(seconds)

    def timed(self, sent_at: float, at: float, not_before: float | None) -> None:
        """Availability and latency of an arrival within [not_before, at]."""
        upper = at - sent_at
        lower = upper if not_before is None else min(not_before - sent_at, upper)
        for key, limit in self._rules.time_limits:
            within = GOOD if upper <= limit else BAD if lower > limit else UNKNOWN
            self._settle(key, within)
        if lower <= self._rules.deadline < upper:
            self.totals.unknown += 1

    def overdue(self) -> None:
        """Nothing arrived by the deadline, and nothing explains_absence it."""
        for key, _ in self._rules.time_limits:
            self._settle(key, BAD)

    def time_unknown(self) -> None:
        """Nobody can tell whether it arrived in time."""
        self.totals.unknown += 1
        for key, _ in self._rules.time_limits:
            self._settle(key, UNKNOWN)

    def completeness_unknown(self) -> None:
        """Nobody can tell whether it arrived at all."""
        self._settle(COMPLETENESS, UNKNOWN)

    def complete(self, sequence: int, source: int | None, target: int) -> None:
        """It arrived; place and order are judged where the source partition is known."""
        self._settle(COMPLETENESS, GOOD)
        if source is None:
            return
        in_order = sequence > self._newest_in.get(source, -1)
        if in_order:
            self._newest_in[source] = sequence
        self.totals.reordered += not in_order
        self.totals.moved += source != target
        self._settle(ORDER, GOOD if in_order else BAD)
        self._settle(AFFINITY, GOOD if source == target else BAD)

    def absent(self, *, expired: bool) -> None:
        """Lost, or expired: the latter is counted apart, since MM2 had nothing left to copy."""
        if expired:
            self.totals.expired += 1
        else:
            self.totals.lost += 1
            self._settle(COMPLETENESS, BAD)

    def _settle(self, key: SliKey, events: SliCount) -> None:
        if key in self._counters:
            self._counters.add(key, events)
