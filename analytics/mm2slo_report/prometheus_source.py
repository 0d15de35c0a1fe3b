"""Counts of events from the steps of the recording rules, summed by Prometheus.

It also checks whether Prometheus keeps its data long enough and has loaded the generated rules.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import NAMESPACED
from mm2slo_core.catalogue.prometheus_series import (
    BAD_STEP,
    EVENTS_STEP,
    EXCLUDED_STEP,
    SETTLES,
    UNKNOWN_STEP,
    RecordedSeries,
)
from mm2slo_core.catalogue.promql import Matcher, add_matcher, aggregate, equal, over, select
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.quantity_text import format_duration
from mm2slo_core.reporting.step_counts import (
    STEP_MS,
    Indicator,
    SpanCounts,
    StepCounts,
    step_ending_at,
)
from mm2slo_core.topology import Flow
from mm2slo_report.sli_source import SliSourceError

if TYPE_CHECKING:
    from mm2slo_report.prometheus_api import PrometheusClient, QueriedSeries


_LABELS: Final = ("source", "target", "sli", "tier")

_SUMS: Final[Mapping[str, tuple[str, RecordedSeries]]] = {
    "events": ("sum_over_time", EVENTS_STEP),
    "bad": ("sum_over_time", BAD_STEP),
    "unknown": ("sum_over_time", UNKNOWN_STEP),
    "excluded": ("sum_over_time", EXCLUDED_STEP),
    "steps": ("count_over_time", EVENTS_STEP),
}
"""Queries of a span, by the value of the label `part`."""
_PARALLEL: Final = 4
_OLDEST_MS: Final = 400 * 86_400_000
_PROBES_MS: Final = 6 * 3_600_000
_FRESH_MS: Final = 600_000

_LOOKBACKS: Final = ("1d:5m", "63d:1h")
"""Lookbacks for the last sample: exact within a day, to the hour before that."""


class PrometheusSource:
    """The history that recording rules keep in Prometheus, in steps of five minutes. Thread-safe.

    A step belongs to the span that it ends in. A missed evaluation is unmeasured. With *namespace*,
    it is that of the rules with this label: other releases may have flows of the same name. *clock*
    returns epoch ms.
    """

    name: Final = "prometheus"
    # The rules leave out a step if maintenance was active in it or just before.
    maintenance_tail_ms: Final = STEP_MS + round(SETTLES * 1000)

    def __init__(
        self,
        client: PrometheusClient,
        *,
        namespace: str | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._lock = threading.Lock()
        self._firsts: tuple[int, Mapping[Indicator, int]] | None = None

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """See the port."""
        if not indicators or not spans:
            return {each: {} for each in indicators}
        only = _matchers(indicators[0]) if len(indicators) == 1 else ()
        with ThreadPoolExecutor(_PARALLEL) as pool:
            found = list(pool.map(lambda span: self._sums(span, only), spans))
        answer: dict[Indicator, Mapping[Span, SpanCounts] | SliSourceError] = {}
        for each in indicators:
            sums = [parts.get(each, {}) for parts in found]
            if all(math.isfinite(value) for parts in sums for value in parts.values()):
                answer[each] = dict(zip(spans, map(_span_counts, sums), strict=True))
            else:
                answer[each] = _not_finite(each)
        return answer

    def steps(self, indicator: Indicator, span: Span) -> Sequence[StepCounts]:
        """See the port; each covers a step."""
        steps: dict[int, dict[str, float]] = defaultdict(dict)
        for part, (_, series) in _SUMS.items():
            if part in {"steps", "excluded"}:
                continue
            text = f"{select(series, *_matchers(indicator))}[{_length(span)}]"
            for found in self._query(text, span.end):
                for point in found.points:
                    steps[point.at][part] = point.value
        counted = []
        for at, parts in sorted(steps.items()):
            if "events" not in parts:
                continue
            events, unknown = parts["events"], parts.get("unknown", 0.0)
            good = events - parts.get("bad", 0.0)
            if not all(map(math.isfinite, (good, events, unknown))):
                raise _not_finite(indicator)
            counted.append(step_ending_at(at, span, good=good, total=events, unknown=unknown))
        return counted

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """See the port; read again every ten minutes."""
        found = self._first_steps()
        return {each: found.get(each) for each in indicators}

    def last_seen(
        self, indicators: Sequence[Indicator], before: int
    ) -> Mapping[Indicator, int | None]:
        """See the port."""
        found: dict[Indicator, int] = {}
        for lookback in _LOOKBACKS:
            if all(each in found for each in indicators):
                break
            found |= self._timestamps("max_over_time", lookback, before)
        return {each: found.get(each) for each in indicators}

    def indicators(self) -> Sequence[Indicator]:
        """See the port."""
        return tuple(sorted(self._first_steps(), key=lambda each: (each.flow, each.key)))

    def warnings(self, window: float) -> Sequence[str]:
        """See the port. Never raises."""
        try:
            runtime = self._client.runtime()
        except SliSourceError as problem:
            return (f"the retention of Prometheus is unknown: {problem}",)
        return retention_warnings(str(runtime.get("storageRetention", "")), window)

    def rules_problems(self, expected: Iterable[str]) -> Sequence[str]:
        """The *expected* rule groups that are not loaded, for readiness."""
        try:
            return missing_groups(self._client.rule_groups(self._namespace), expected)
        except SliSourceError as problem:
            return (str(problem),)

    def _query(self, expression: str, at: int) -> Sequence[QueriedSeries]:
        return self._client.query(self._select_own(expression), at)

    def _select_own(self, expression: str) -> str:
        if self._namespace is None:
            return expression
        return add_matcher(expression, NAMESPACED, equal("namespace", self._namespace))

    def _sums(self, span: Span, only: Sequence[Matcher]) -> Mapping[Indicator, Mapping[str, float]]:
        """The parts of _SUMS by indicator."""
        parts = []
        for name, (function, series) in _SUMS.items():
            summed = aggregate("max", over(function, series, _length(span), *only), _LABELS)
            # `or` drops series of its right side whose labels are also on the left: without a label
            # of its own, a part would hide the others of its indicator.
            parts.append(f'label_replace({summed}, "part", "{name}", "", "")')
        found: dict[Indicator, dict[str, float]] = defaultdict(dict)
        for each in self._query("\nor\n".join(parts), span.end):
            indicator = _indicator(each)
            if indicator is not None:
                found[indicator][each.labels["part"]] = each.points[0].value
        return found

    def _first_steps(self) -> Mapping[Indicator, int]:
        """The start of each indicator's first step."""
        with self._lock:
            now = self._clock()
            if self._firsts is None or not 0 <= now - self._firsts[0] < _FRESH_MS:
                self._firsts = now, self._find_first_steps(now)
            return self._firsts[1]

    def _find_first_steps(self, now: int) -> Mapping[Indicator, int]:
        """Look every six hours, then for the first sample in the day before."""
        probe = self._select_own(str(aggregate("max", select(EVENTS_STEP), _LABELS)))
        seen: dict[Indicator, int] = {}
        for each in self._client.query_range(probe, now - _OLDEST_MS, now, _PROBES_MS):
            indicator = _indicator(each)
            if indicator is not None:
                seen[indicator] = each.points[0].at
        found = self._timestamps("min_over_time", "1d:5m", now)
        for at in sorted(set(seen.values()) - {now}, reverse=True):
            earlier = self._timestamps("min_over_time", "1d:5m", at)
            found |= {each: first for each, first in earlier.items() if seen.get(each) == at}
        return {each: at - STEP_MS for each, at in found.items()}

    def _timestamps(self, function: str, lookback: str, at: int) -> dict[Indicator, int]:
        """The first or last sample (epoch ms) of each indicator within *lookback* before *at*."""
        text = f"{function}(timestamp({select(EVENTS_STEP)})[{lookback}])"
        found: dict[Indicator, int] = {}
        for each in self._query(f"max by ({', '.join(_LABELS)}) ({text})", at):
            indicator = _indicator(each)
            if indicator is not None:
                found[indicator] = round(each.points[0].value * 1000)
        return found


def _length(span: Span) -> str:
    """The range of the samples of (start, end].

    A millisecond shorter than the span: ranges of Prometheus 2 include their older edge, those of
    Prometheus 3 do not.
    """
    return f"{span.end - span.start - 1}ms"


def _matchers(indicator: Indicator) -> tuple[Matcher, ...]:
    flow, key = indicator
    values = (flow.source, flow.target, key.sli.value, key.tier)
    return tuple(equal(label, value) for label, value in zip(_LABELS, values, strict=True))


def _indicator(found: QueriedSeries) -> Indicator | None:
    """The indicator of a series; None for one that this version does not know."""
    source, target, sli, tier = (found.labels.get(label, "") for label in _LABELS)
    if not source or not target or sli not in set(Sli):
        return None
    return Indicator(Flow(source, target), SliKey(Sli(sli), tier))


def _span_counts(parts: Mapping[str, float]) -> SpanCounts:
    events, bad = parts.get("events", 0.0), parts.get("bad", 0.0)
    unknown, steps, excluded = (parts.get(name, 0.0) for name in ("unknown", "steps", "excluded"))
    return SpanCounts.of_steps(events - bad, bad, unknown, steps, excluded)


def _not_finite(indicator: Indicator) -> SliSourceError:
    flow, key = indicator
    return SliSourceError(
        f"Prometheus has NaN or an infinite value for {flow.label} {key.sli} {key.tier}"
    )


_UNITS: Final = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
    "w": 7 * 86_400.0,
    "y": 365 * 86_400.0,
}
_PART: Final = re.compile(r"(\d+)(ms|[smhdwy])", re.ASCII)
_DURATION: Final = re.compile(r"(?:\d+(?:ms|[smhdwy]))+", re.ASCII)
_SIZE: Final = re.compile(r"[0-9.]+\s*(?:[KMGTPE]i?)?B", re.ASCII)

_SPARE: Final = 7 * 86_400.0
"""Time to look into a past window."""


def retention(text: str) -> tuple[float | None, str]:
    """The seconds and the size in `storageRetention`, as in `15d`, `35d or 10GiB`, `512MB`."""
    seconds, size = None, ""
    for part in (each.strip() for each in text.split(" or ")):
        if _DURATION.fullmatch(part):
            seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(part))
        elif _SIZE.fullmatch(part):
            size = part
    return seconds, size


def retention_warnings(configured: str, window: float) -> Sequence[str]:
    """Warnings about figures over *window* seconds."""
    seconds, size = retention(configured)
    needed = format_duration(window + _SPARE)
    if seconds is not None and seconds > 0 and seconds < window:
        text = (
            f"Prometheus keeps samples for {format_duration(seconds)}, less than the window of "
            f"{format_duration(window)}: what is older is missing; start it with "
            f"--storage.tsdb.retention.time={needed}"
        )
        return (text,)
    if seconds is None and size:
        text = (
            f"Prometheus keeps {size} of samples, whatever their age: the start of a window of "
            f"{format_duration(window)} may be missing; also start it with "
            f"--storage.tsdb.retention.time={needed}"
        )
        return (text,)
    return ()


def missing_groups(loaded: Iterable[str], expected: Iterable[str]) -> Sequence[str]:
    """A sentence for each of the *expected* rule groups that is not *loaded*."""
    known = set(loaded)
    return tuple(
        f"Prometheus has not loaded the rule group {name}: add the generated files to its "
        "rule_files and reload it"
        for name in expected
        if name not in known
    )
