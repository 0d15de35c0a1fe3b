"""A report service with an in-memory history and a SQLite store, for tests."""

import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import Any
from zoneinfo import ZoneInfo

from minute_history import AVAILABILITY, DAY_MS, FLOW, Minutes, objective

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Exclusion, Span
from mm2slo_core.objectives.objective import Objective
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator, SpanCounts, StepCounts
from mm2slo_core.topology import Flow
from mm2slo_report.access_tokens import AccessToken
from mm2slo_report.reporter import Reporter, StoreFacts
from mm2slo_report.service_settings import Settings, Tokens
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web.report_app import create_app
from mm2slo_report.web.report_service import FlowStatus, Maintenance, RecorderStatus, ReportService
from mm2slo_store.store import Store

with warnings.catch_warnings():
    # Starlette deprecates httpx for its successor; both work for tests.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

NOW = 1_784_025_012_345
"""2026-07-14T10:30:12.345Z."""
AS_OF = NOW - NOW % MINUTE_MS
LATENCY = SliKey(Sli.LATENCY, "10s")
REVERSE_FLOW = Flow("eu", "us")

OUTAGE = AS_OF - 2 * DAY_MS
"""Six minutes without a good event in us->eu's availability start here."""
HOST = "http://localhost"
NOT_APPLIED = "burn rules are unchanged"


class Sums:
    """Sorted minutes with running totals, so that counting a span takes two lookups."""

    def __init__(self, minutes: Minutes) -> None:
        self.at = sorted(minutes.counted)
        self._all = [StepCounts(at, *minutes.counted[at]) for at in self.at]
        zero = (0.0, 0.0, 0.0)
        self._sums = [zero, *accumulate((each[1:4] for each in self._all), _plus)]

    def count(self, span: Span) -> SpanCounts:
        first, last = self._places(span)
        good, total, unknown = (
            after - before
            for before, after in zip(self._sums[first], self._sums[last], strict=True)
        )
        return SpanCounts(good=good, total=total, unknown=unknown, minutes=last - first)

    def within(self, span: Span) -> list[StepCounts]:
        first, last = self._places(span)
        return self._all[first:last]

    def _places(self, span: Span) -> tuple[int, int]:
        return bisect_left(self.at, span.start), bisect_left(self.at, span.end)


def _plus(one: Any, other: Any) -> Any:
    return tuple(a + b for a, b in zip(one, other, strict=True))


_NOTHING = Sums(Minutes())


@dataclass
class MemorySource:
    """Counts in memory; *problems* fails single indicators, *down* all of them."""

    history: dict[Indicator, Sums] = field(default_factory=dict)
    problems: dict[Indicator, SliSourceError] = field(default_factory=dict)
    down: SliSourceError | None = None
    name: str = "recorder"
    maintenance_tail_ms: int = 0
    count_calls: int = 0
    source_warnings: tuple[str, ...] = ()

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        self._check()
        self.count_calls += 1
        return {
            each: self.problems[each]
            if each in self.problems
            else {span: self._of(each).count(span) for span in spans}
            for each in indicators
        }

    def steps(self, indicator: Indicator, span: Span) -> Sequence[StepCounts]:
        self._check()
        if indicator in self.problems:
            raise self.problems[indicator]
        return self._of(indicator).within(span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        self._check()
        return {each: next(iter(self._of(each).at), None) for each in indicators}

    def last_seen(
        self, indicators: Sequence[Indicator], before: int
    ) -> Mapping[Indicator, int | None]:
        self._check()
        return {
            each: max((at + MINUTE_MS for at in self._of(each).at if at < before), default=None)
            for each in indicators
        }

    def indicators(self) -> Sequence[Indicator]:
        self._check()
        return tuple(self.history)

    def warnings(self, window: float) -> Sequence[str]:
        assert window >= 0
        return self.source_warnings

    def _of(self, indicator: Indicator) -> Sums:
        return self.history.get(indicator, _NOTHING)

    def _check(self) -> None:
        if self.down is not None:
            raise self.down


def three_objectives() -> tuple[Objective, ...]:
    """Objectives over 3 days, for speed: one with an outage, one without, one without data."""
    window = 3 * 86_400.0
    return (
        objective(0.999, window=window),
        objective(0.99, key=LATENCY, window=window),
        objective(0.99, flow=REVERSE_FLOW, window=window),
    )


@cache
def _history() -> dict[Indicator, Sums]:
    """Sixty events a minute for 6 days; the third objective's indicator is never seen."""
    history = {}
    for key in (AVAILABILITY, LATENCY):
        minutes = Minutes()
        for at in range(AS_OF - 6 * DAY_MS, AS_OF, MINUTE_MS):
            out = key == AVAILABILITY and OUTAGE <= at < OUTAGE + 6 * MINUTE_MS
            minutes.put(at, 0.0 if out else 60.0, 60.0 if out else 0.0)
        history[Indicator(FLOW, key)] = Sums(minutes)
    return history


def sample_source() -> MemorySource:
    """A source with `_history`, which tests may modify."""
    return MemorySource(dict(_history()))


@dataclass
class ServiceFixture:
    """A service with a client."""

    source: MemorySource
    store: Store
    service: ReportService
    client: TestClient
    clock: list[int]

    def get(self, path: str, **headers: str) -> Any:
        """The JSON of a 200 response."""
        response = self.client.get(path, headers=headers)
        assert response.status_code == 200, response.text
        return response.json()


@dataclass(frozen=True)
class FakeEffects:
    """Effects of planned maintenance outside of reports."""

    done: tuple[str, ...] = ()
    problems: tuple[str, ...] = (NOT_APPLIED,)


class ReportOnlyMaintenance:
    """Planned maintenance that affects reports only."""

    def silence_problem(self, new: Exclusion, now: int, *, requested: bool | None) -> str:
        assert new.added_at <= now
        return "needs Alertmanager's URL" if requested else ""

    def apply_added(
        self, new: Exclusion, now: int, *, silence: bool | None
    ) -> tuple[Exclusion, FakeEffects]:
        assert new.added_at <= now
        assert not silence
        return new, FakeEffects()

    def apply_removed(self, removed: Exclusion, now: int) -> FakeEffects:
        assert removed.added_at <= now
        return FakeEffects()


@dataclass(frozen=True)
class FixedTokens:
    """Tokens that do not change."""

    valid: tuple[AccessToken, ...]


def start_service(
    store: Store,
    source: MemorySource | None = None,
    *,
    tokens: tuple[AccessToken, ...] = (),
    token_source: Tokens | None = None,
    maintenance: Maintenance | None = None,
    missing_rules: Callable[[], Sequence[str]] | None = None,
    objectives: tuple[Objective, ...] | None = None,
    flow_status: FlowStatus | None = None,
    recorder: RecorderStatus | None = None,
    **settings: Any,
) -> ServiceFixture:
    """A service at `NOW`."""
    source = sample_source() if source is None else source
    clock = [NOW]
    reporter = Reporter(
        objectives=three_objectives() if objectives is None else objectives,
        source=source,
        facts=StoreFacts(store),
        zone=ZoneInfo("Europe/Berlin"),
        clock=lambda: clock[0],
    )
    # Without caching, requests see changes immediately.
    accepted = FixedTokens(tokens) if tokens else token_source
    service_settings = replace(
        Settings(version="0.1.0", cache_seconds=0.0, tokens=accepted), **settings
    )
    service = ReportService(
        reporter,
        store,
        service_settings,
        flow_status,
        recorder,
        maintenance=maintenance or ReportOnlyMaintenance(),
        missing_rules=missing_rules,
    )
    client = TestClient(create_app(service), base_url=HOST)
    return ServiceFixture(source, store, service, client, clock)
