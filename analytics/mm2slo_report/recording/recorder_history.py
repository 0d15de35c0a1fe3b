"""The recorder's history in the results store: as a source, as a port, its lease and health.

The lease lets one of several report services on a store record: two would count twice. Health is
for `/readyz` and `/metrics`. Every method of the store raises UserError if it fails. Times are
epoch ms.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import Indicator, SpanCounts, StepCounts, Tally
from mm2slo_core.user_errors import UserError
from mm2slo_report.sli_source import SliSourceError
from mm2slo_store.sli_history import CounterState, SliHistory
from mm2slo_store.store_leases import LeaseHeldError

_DAY: Final = 86_400

KEPT_MS: Final = 400 * 86_400_000
"""How long steps are kept: a year, and the month before it."""
_KEPT: Final = KEPT_MS / 1000


class RecorderSource:
    """A SliSource of a *history* in the results store."""

    name = "recorder"
    maintenance_tail_ms = 0

    def __init__(self, history: SliHistory) -> None:
        self._history = history

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """See the port; never fails for a single indicator."""
        with _as_source_errors():
            found = self._history.span_counts(indicators, spans)
        return {each: dict(zip(spans, found[each], strict=True)) for each in indicators}

    def steps(self, indicator: Indicator, span: Span) -> Sequence[StepCounts]:
        """See the port."""
        with _as_source_errors():
            return self._history.steps(indicator, span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """See the port."""
        with _as_source_errors():
            found = self._history.first_seen()
        return {each: found.get(each) for each in indicators}

    def last_seen(
        self, indicators: Sequence[Indicator], before: int
    ) -> Mapping[Indicator, int | None]:
        """See the port."""
        with _as_source_errors():
            return self._history.last_seen(indicators, before)

    def indicators(self) -> Sequence[Indicator]:
        """See the port."""
        with _as_source_errors():
            return tuple(self._history.first_seen())

    def warnings(self, window: float) -> Sequence[str]:
        """A warning if steps are not kept for *window*."""
        if window <= _KEPT:
            return ()
        text = (
            f"the recorder keeps {_KEPT / _DAY:g} days, less than the window of "
            f"{window / _DAY:g} days: what is older is missing"
        )
        return (text,)


@contextmanager
def _as_source_errors() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise SliSourceError(str(error)) from error


class HistoryStore(Protocol):
    """Stores steps, and the counters from which a restarted recorder continues."""

    def record_step(
        self, end: int, counts: Mapping[Indicator, Tally], states: Iterable[CounterState] = ()
    ) -> None:
        """Store or replace the step that ends at *end*, in one transaction with *states*."""

    def latest_step(self) -> tuple[int, Mapping[Indicator, Tally]] | None:
        """The end and the counts of the newest step; None: none."""

    def recorder_states(self) -> Collection[CounterState]:
        """The counters as last stored."""

    def forget(self, before: int) -> int:
        """Delete the steps that ended by *before*; returns their number."""

    def acquire(self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int) -> None:
        """Acquire or renew a lease. Raises LeaseHeldError if another holds it."""

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Release the lease; False if another holds it."""


_MIN_TTL_MS: Final = 60_000

_MISSED_RENEWALS: Final = 3
"""Missed renewals before another service takes over."""
_CLUSTER: Final = "mm2slo"

_TOPIC: Final = "SLI history"
"""Leases of the store are named by topics; no topic can have a space in its name."""


class RecorderLease:
    """The lease on the history for *holder*, a name that is unique and survives restarts."""

    def __init__(self, store: HistoryStore, holder: str, interval: float) -> None:
        """*interval*: seconds between two calls of `other_holder`."""
        self._store = store
        self._holder = holder
        self._ttl_ms = max(_MIN_TTL_MS, round(_MISSED_RENEWALS * interval * 1000))

    def other_holder(self) -> str | None:
        """Acquire or renew the lease; returns its holder if that is another. Raises UserError."""
        try:
            self._store.acquire(_CLUSTER, _TOPIC, holder=self._holder, ttl_ms=self._ttl_ms)
        except LeaseHeldError as held:
            return held.holder
        return None

    def release(self) -> None:
        """Release the lease. Raises UserError."""
        self._store.release(_CLUSTER, _TOPIC, holder=self._holder)


_JITTER_MS: Final = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetHealth:
    """Scrapes of an exporter since this service started."""

    name: str
    scrapes: int = 0
    failures: int = 0
    indicators: int = 0
    """In the last valid page."""
    problem: str = ""
    """Why the last scrape failed; empty: it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderHealth:
    """A snapshot of the recorder's state."""

    targets: tuple[TargetHealth, ...] = ()
    recorded_until: int | None = None
    """The end of the newest whole step in the store."""
    recorded_by: str = ""
    """Another service that records in place of this one; empty: none."""
    store_problem: str = ""
    ahead_ms: int = 0
    """How far the newest step is in the future, because the clock was set back."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Current problems, a sentence each."""
        found = (
            [f"the history cannot be stored: {self.store_problem}"] if self.store_problem else []
        )
        if self.ahead_ms > _JITTER_MS:
            found.append(
                f"the history is {self.ahead_ms // 1000} s ahead of the clock: nothing is stored "
                "until the clock catches up"
            )
        for each in self.targets:
            if each.problem:
                found.append(f"{each.name} cannot be scraped: {each.problem}")
            elif each.scrapes and not each.indicators:
                found.append(f"{each.name} exposes no service-level indicators")
        return tuple(found)

    @property
    def remarks(self) -> tuple[str, ...]:
        """`problems`, or a note that recording has just started; for readers of a report."""
        if self.problems or self.recorded_by or self.recorded_until is not None:
            return self.problems
        return ("no data recorded yet: the first figures follow within five minutes",)
