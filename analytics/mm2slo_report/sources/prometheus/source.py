"""Counts of events from Prometheus: differences of raw counters, never an extrapolation."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.reporting.minute_counts import (
    MINUTE_MS,
    Indicator,
    MinuteCounts,
    SpanCounts,
    Tally,
    whole_minute,
)
from mm2slo_core.reporting.tally_arithmetic import minus, plus
from mm2slo_report.sources.prometheus.api import MOST_POINTS
from mm2slo_report.sources.prometheus.checks import missing_groups, retention_warnings
from mm2slo_report.sources.prometheus.history import History
from mm2slo_report.sources.prometheus.pooling import NOTHING, Pooled, below, stretches
from mm2slo_report.sources.prometheus.series import matchers
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_report.sources.prometheus.api import PrometheusClient
    from mm2slo_report.sources.prometheus.history import Progress, View
    from mm2slo_report.sources.prometheus.pooling import Stretch
    from mm2slo_report.sources.prometheus.series import Series

_Known = dict[tuple["Series", int], Tally]


class PrometheusSource:
    """The history that Prometheus keeps of the exporters. Safe to use from several threads.

    *clock* gives epoch ms. What was found of the past is kept: the first question is the dear one.
    """

    name: Final = "prometheus"

    def __init__(
        self,
        client: PrometheusClient,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._client = client
        self._clock = clock
        self._history = History(client, clock)

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """Each indicator's counts of each span, or its error; see SliSource."""
        if not indicators or not spans:
            return {each: {} for each in indicators}
        found = self._counts(indicators, spans)
        if any(isinstance(each, SliSourceError) for each in found.values()):
            # What was deleted since it was looked at is looked for no more.
            self._history.forget()
            found = self._counts(indicators, spans)
        return found

    def minutes(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        """The minutes of *span* that hold a sample, ascending; see SliSource."""
        question = _Question(self._history, (indicator,), span.start, span.end)
        presence = question.presence[indicator]
        known = question.wanted(indicator, [span.start])
        values = self._history.values()
        for start in range(span.start, span.end, MOST_POINTS * MINUTE_MS):
            end = min(start + MOST_POINTS * MINUTE_MS, span.end)
            conditions = matchers(indicator)
            for series, samples in values.of_one(conditions, start, end).items():
                for at, tally in samples:
                    known.add((series, at - MINUTE_MS))
                    question.put(series, at - MINUTE_MS, tally)
        question.read(known)
        pooled = question.pooled(indicator)
        view = question.view.presence
        union = 0
        for bits in presence.values():
            union |= bits
        union &= view.within(span)
        found = []
        before = pooled.until(view.bit(span.start))
        while union:
            lowest = union & -union
            bit = lowest.bit_length() - 1
            until = pooled.until(bit + 1)
            grown = minus(until, before)
            found.append(MinuteCounts(view.at(bit), grown.good, grown.total, grown.unknown))
            before = until
            union ^= lowest
        question.check(indicator)
        return found

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """When each was first seen: to the minute where it was looked at, else within a day."""
        oldest = self._history.oldest()
        view = self._history.seen()
        firsts: dict[Indicator, int] = {}
        if view is not None:
            lowest = {
                bits: view.presence.at((bits & -bits).bit_length() - 1)
                for bits in {view.presence.of(each) for each in view.presence.series}
                if bits
            }
            for each in view.presence.series:
                at = lowest.get(view.presence.of(each))
                if at is not None:
                    firsts[each.indicator] = min(at, firsts.get(each.indicator, at))
        found: dict[Indicator, int | None] = {}
        for indicator in indicators:
            times = [at for at in (oldest.get(indicator), firsts.get(indicator)) if at is not None]
            found[indicator] = whole_minute(min(times)) if times else None
        return found

    def read_ahead(self, seconds: float) -> None:
        """Read the last *seconds* of history in advance. Raises SliSourceError."""
        now = whole_minute(self._clock())
        self._history.view(now - round(seconds * 1000), now)

    @property
    def progress(self) -> Progress | None:
        """Progress of the first read of the history; None: not reading. Never waits."""
        return self._history.progress

    def indicators(self) -> Sequence[Indicator]:
        """What Prometheus still holds samples of."""
        return tuple(sorted(self._history.oldest(), key=lambda each: (each.flow, each.key)))

    def warnings(self, window: float) -> Sequence[str]:
        """What a reader of figures over *window* seconds must know. Never raises."""
        try:
            runtime = self._client.runtime()
        except SliSourceError as problem:
            return (f"how long Prometheus keeps samples is not known: {problem}",)
        return retention_warnings(str(runtime.get("storageRetention", "")), window)

    def rules_problems(self, expected: Iterable[str]) -> Sequence[str]:
        """Which of the *expected* groups of rules are not loaded, for readiness."""
        try:
            return missing_groups(self._client.rule_groups(), expected)
        except SliSourceError as problem:
            return (str(problem),)

    def _counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> dict[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        start, end = min(each.start for each in spans), max(each.end for each in spans)
        question = _Question(self._history, indicators, start, end)
        edges = sorted({edge for each in spans for edge in (each.start, each.end)})
        question.read(pair for each in indicators for pair in question.wanted(each, edges))
        found: dict[Indicator, Mapping[Span, SpanCounts] | SliSourceError] = {}
        seen: dict[tuple[int, Span], int] = {}
        view = question.view.presence
        masks = {span: view.within(span) for span in spans}
        for indicator in indicators:
            union = 0
            for bits in question.presence[indicator].values():
                union |= bits
            pooled = question.pooled(indicator)
            totals = {edge: pooled.until(view.bit(edge)) for edge in edges}
            counted = {}
            for span in spans:
                if (union, span) not in seen:
                    seen[union, span] = (union & masks[span]).bit_count()
                grown = minus(totals[span.end], totals[span.start])
                counted[span] = SpanCounts(
                    good=grown.good,
                    total=grown.total,
                    unknown=grown.unknown,
                    minutes=seen[union, span],
                )
            try:
                question.check(indicator)
                found[indicator] = counted
            except SliSourceError as problem:
                found[indicator] = problem
        return found


class _Question:
    """Values that one question needs, of what was found of the history."""

    def __init__(
        self, history: History, indicators: Sequence[Indicator], start: int, end: int
    ) -> None:
        self._history = history
        self.view: View = history.view(start, end)
        self.presence = self._presence(set(indicators), start, end)
        self._stretches: dict[Indicator, Sequence[Stretch]] = {}
        self._known: _Known = {}
        self._problems: dict[Indicator, str] = {}

    def put(self, series: Series, minute: int, value: Tally) -> None:
        """A value that was read elsewhere."""
        bit = self.view.presence.bit(minute)
        self._known[series, bit] = plus(value, self.view.journal.until(series, minute))

    def wanted(self, indicator: Indicator, edges: Sequence[int]) -> set[tuple[Series, int]]:
        """Series and minutes whose values the totals at *edges* need."""
        asked: set[tuple[Series, int]] = set()
        view = self.view.presence

        def ask(series: Series, bit: int) -> Tally:
            asked.add((series, view.at(bit)))
            return NOTHING

        pooled = self._pooled(indicator, ask)
        for edge in edges:
            pooled.until(view.bit(edge))
        return asked

    def read(self, wanted: Iterable[tuple[Series, int]]) -> None:
        """Read the values that are not known yet. Raises SliSourceError."""
        view = self.view
        missing: dict[int, list[Series]] = defaultdict(list)
        for series, minute in wanted:
            if (series, view.presence.bit(minute)) not in self._known:
                missing[minute].append(series)
        found = self._history.values().at(missing, self._history.settled)
        for minute, several in missing.items():
            bit = view.presence.bit(minute)
            for series in several:
                value = found[minute].get(series)
                if value is not None:
                    hidden = view.journal.until(series, minute)
                    self._known[series, bit] = plus(value, hidden)

    def pooled(self, indicator: Indicator) -> Pooled:
        """The totals of *indicator*."""
        return self._pooled(indicator, self._value)

    def check(self, indicator: Indicator) -> None:
        """Raises SliSourceError when a value that its totals needed was not there, or no number."""
        problem = self._problems.get(indicator)
        if problem is not None:
            raise SliSourceError(problem)

    def _pooled(self, indicator: Indicator, joined: Callable[[Series, int], Tally]) -> Pooled:
        presence = self.presence[indicator]
        if indicator not in self._stretches:
            self._stretches[indicator] = stretches(presence)
        return Pooled(presence, self._stretches[indicator], joined)

    def _value(self, series: Series, bit: int) -> Tally:
        value = self._known.get((series, bit))
        if value is None:
            self._problems[series.indicator] = (
                f"Prometheus lacks one of the three counters of {_shown(series.indicator)}"
            )
            return NOTHING
        if not all(math.isfinite(each) for each in value):
            self._problems[series.indicator] = (
                f"Prometheus holds no number (NaN or infinite) for {_shown(series.indicator)}"
            )
            return NOTHING
        return value

    def _presence(
        self, wanted: set[Indicator], start: int, end: int
    ) -> Mapping[Indicator, Mapping[Series, int]]:
        """From each replica's last minute before *start* on: what is older counts for nothing."""
        view = self.view.presence
        first, limit = view.bit(start), (1 << max(view.bit(end), 0)) - 1
        cut: dict[int, int] = {}
        found: dict[Indicator, dict[Series, int]] = {each: {} for each in wanted}
        for series in sorted(view.series):
            if series.indicator not in wanted:
                continue
            bits = view.of(series)
            if bits not in cut:
                last = below(bits, first) if first > 0 else None
                cut[bits] = (bits if last is None else bits >> last << last) & limit
            if cut[bits]:
                found[series.indicator][series] = cut[bits]
        return found


def _shown(indicator: Indicator) -> str:
    flow, key = indicator
    return f"{flow.label} {key.sli} {key.tier}"
