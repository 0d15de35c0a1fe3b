"""Counters of settled canaries: SLIs, outcomes and latencies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_core.canary_rules import AFFINITY, COMPLETENESS, ORDER, UNIQUENESS, CanaryTotals
from mm2slo_core.sli_counters import BAD, GOOD, UNKNOWN, SliCount, SliCounters, SliKey

if TYPE_CHECKING:
    from mm2slo_core.canary_rules import CanaryRules


class CanaryCounters:
    """Counters of one ledger; each method counts one event of one canary."""

    __slots__ = ("_counters", "_latencies", "_newest_in", "_rules", "totals")

    def __init__(self, rules: CanaryRules, previous: CanaryCounters | None = None) -> None:
        """Continues the counts of *previous*, of the same flow with other rules."""
        self._rules = rules
        self._counters = SliCounters(rules.indicators, previous.counters if previous else None)
        self._latencies: list[float] = []
        self._newest_in: dict[int, int] = {}
        self.totals: CanaryTotals = replace(previous.totals) if previous else CanaryTotals()

    @property
    def counters(self) -> dict[SliKey, SliCount]:
        """Good, total and unknown events of each SLI, initialised at 0."""
        return self._counters.snapshot()

    def take_latencies(self) -> list[float]:
        """Return the latencies in seconds since the last call."""
        taken, self._latencies = self._latencies, []
        return taken

    def count_duplicate(self) -> None:
        """Count a repeated arrival."""
        self.totals.duplicates += 1
        self._settle(UNIQUENESS, BAD)

    def count_arrival(self) -> None:
        """Count a first arrival."""
        self.totals.received += 1
        self._settle(UNIQUENESS, GOOD)

    def add_latency(self, seconds: float) -> None:
        self._latencies.append(seconds)

    def settle_times(self, sent_at: float, at: float, not_before: float | None) -> None:
        """Settle availability and latency of an arrival within [not_before, at]."""
        upper = at - sent_at
        lower = upper if not_before is None else min(not_before - sent_at, upper)
        for key, limit in self._rules.time_limits:
            within = GOOD if upper <= limit else BAD if lower > limit else UNKNOWN
            self._settle(key, within)
        if lower <= self._rules.deadline < upper:
            self.totals.unknown += 1

    def count_times_bad(self) -> None:
        """Count availability and latency as bad: no arrival by the deadline."""
        for key, _ in self._rules.time_limits:
            self._settle(key, BAD)

    def count_times_unknown(self) -> None:
        """Count availability and latency as unknown."""
        self.totals.unknown += 1
        for key, _ in self._rules.time_limits:
            self._settle(key, UNKNOWN)

    def count_unsent(self, canaries: int) -> None:
        """Count canaries that no process sent: nothing of them can be incomplete."""
        self.totals.unknown += canaries
        for key, _ in self._rules.time_limits:
            self._settle(key, SliCount(0, 0, canaries))

    def count_completeness_unknown(self) -> None:
        self._settle(COMPLETENESS, UNKNOWN)

    def count_complete(self, sequence: int, source: int | None, target: int) -> None:
        """Count an arrival; order and affinity only if the source partition is known."""
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

    def count_absent(self, *, expired: bool) -> None:
        """Count a canary as lost, or as expired if the source removed it before replication."""
        if expired:
            self.totals.expired += 1
        else:
            self.totals.lost += 1
            self._settle(COMPLETENESS, BAD)

    def _settle(self, key: SliKey, events: SliCount) -> None:
        if key in self._counters:
            self._counters.add(key, events)
