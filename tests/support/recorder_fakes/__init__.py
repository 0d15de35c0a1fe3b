"""Exporter pages, and an in-memory history with the constraints of the store."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.step_counts import STEP_MS, Indicator, Tally
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store.sli_history import CounterState
from mm2slo_store.store_leases import LeaseHeldError

FLOW = Flow("us", "eu")
AVAILABILITY = Indicator(FLOW, SliKey(Sli.AVAILABILITY))
LATENCY = Indicator(FLOW, SliKey(Sli.LATENCY, "10s"))
NOON = 1_800_000_000_000 - 1_800_000_000_000 % 3_600_000
"""A whole hour, epoch ms."""
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CLASSIC = "text/plain; version=0.0.4; charset=utf-8"


def exposition(
    counts: Mapping[Indicator, tuple[float, float, float]],
    *,
    started: float | None = None,
    others: int = 0,
) -> str:
    """A page with the SLI counters of each indicator and *others* unrelated series."""
    lines = ["# HELP mm2_sli_events Settled events.", "# TYPE mm2_sli_events counter"]
    lines += [f'mm2_lag_records{{partition="{number}"}} {number}' for number in range(others)]
    if started is not None:
        lines.append(f"process_start_time_seconds {started!r}")
    for (flow, key), (good, total, unknown) in counts.items():
        labels = (
            f'flow="{flow}",source="{flow.source}",target="{flow.target}",'
            f'sli="{key.sli}",tier="{key.tier}"'
        )
        lines += [
            f"mm2_sli_good_events_total{{{labels}}} {good}",
            f"mm2_sli_events_total{{{labels}}} {total}",
            f"mm2_sli_unknown_events_total{{{labels}}} {unknown}",
        ]
    return "\n".join([*lines, "# EOF", ""])


@dataclass
class RecordedHistory:
    """A history store in memory."""

    recorded: dict[int, dict[Indicator, Tally]] = field(default_factory=dict)
    states: dict[tuple[str, Indicator], CounterState] = field(default_factory=dict)
    forgotten: list[int] = field(default_factory=list)
    unavailable: bool = False
    holder: str | None = None
    on_step: Callable[[int], None] = lambda _: None
    """Called with the number of steps after each recorded step."""

    def record_step(
        self, end: int, counts: Mapping[Indicator, Tally], states: Iterable[CounterState] = ()
    ) -> None:
        """In order; the newest step may be recorded again, with more events."""
        self._check_available()
        assert end % STEP_MS == 0
        assert end >= max(self.recorded, default=0), "a step was recorded late"
        step = self.recorded.setdefault(end, {})
        for each, tally in counts.items():
            known = step.get(each, Tally())
            assert all(new >= old for new, old in zip(tally, known, strict=True))
            step[each] = tally
        self.states |= {(each.replica, each.indicator): each for each in states}
        self.on_step(len(self.recorded))

    def latest_step(self) -> tuple[int, Mapping[Indicator, Tally]] | None:
        """The newest step with counts."""
        self._check_available()
        return max(((end, step) for end, step in self.recorded.items() if step), default=None)

    def recorder_states(self) -> Collection[CounterState]:
        """States of all counters."""
        self._check_available()
        return tuple(self.states.values())

    def forget(self, before: int) -> int:
        """Record the call."""
        self._check_available()
        self.forgotten.append(before)
        return 0

    def acquire(self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int) -> None:
        """Acquire the lease for *holder*."""
        del target_cluster
        self._check_available()
        if self.holder not in (None, holder):
            raise LeaseHeldError(target_topic, str(self.holder), ttl_ms)
        self.holder = holder

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Release the lease if *holder* holds it."""
        del target_cluster, target_topic
        self._check_available()
        held = self.holder == holder
        self.holder = None if held else self.holder
        return held

    def _check_available(self) -> None:
        if self.unavailable:
            raise UserError("the store is unavailable")
