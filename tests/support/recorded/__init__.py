"""An exporter's pages, and a history in memory that refuses what the real store refuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_core.errors import UserError
from mm2slo_core.reporting.history import MINUTE_MS, Indicator, Tally
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_store import LeaseHeldError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from mm2slo_store.sli_history.rows import CounterState

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
    end: str = "# EOF\n",
) -> str:
    """A page with good, total and unknown of each indicator, among *others* series."""
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
    return "\n".join(lines) + "\n" + end


@dataclass
class Recorded:
    """The history that a recorder sees; every minute that was recorded is kept as it came."""

    minutes: dict[int, dict[Indicator, Tally]] = field(default_factory=dict)
    states: dict[tuple[str, Indicator], CounterState] = field(default_factory=dict)
    thinned: list[tuple[int, int]] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    away: bool = False
    holder: str | None = None
    told: Callable[[int], None] = lambda _: None
    """Called with the number of minutes after each one."""

    def record_minute(
        self,
        at: int,
        tallies: Mapping[Indicator, Tally],
        seen: Collection[Indicator],
        states: Iterable[CounterState] = (),
    ) -> None:
        """In order; the newest may come again."""
        self._there()
        assert at % MINUTE_MS == 0
        assert at >= (self.latest_minute() or 0), "a minute was recorded late"
        latest = self.latest_tallies()
        for each in seen:
            before = latest.get(each, Tally())
            assert all(new >= old for new, old in zip(tallies[each], before, strict=True))
        self.minutes.setdefault(at, {}).update({each: tallies[each] for each in seen})
        self.states |= {(each.replica, each.indicator): each for each in states}
        self.told(len(self.minutes))

    def latest_tallies(self) -> dict[Indicator, Tally]:
        """The newest totals."""
        self._there()
        found: dict[Indicator, Tally] = {}
        for minute in self.minutes.values():
            found |= minute
        return found

    def latest_minute(self) -> int | None:
        """The newest."""
        self._there()
        return max(self.minutes, default=None)

    def recorder_states(self) -> Collection[CounterState]:
        """All of them."""
        self._there()
        return tuple(self.states.values())

    def thin(self, now: int, keep_minutes_ms: int) -> int:
        """Only kept."""
        self._there()
        self.thinned.append((now, keep_minutes_ms))
        return 0

    def forget(self, before: int) -> int:
        """Only kept."""
        self._there()
        self.forgotten.append(before)
        return 0

    def acquire(self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int) -> None:
        """One holder, until it is released."""
        del target_cluster
        self._there()
        if self.holder not in (None, holder):
            raise LeaseHeldError(target_topic, str(self.holder), ttl_ms)
        self.holder = holder

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """By its holder."""
        del target_cluster, target_topic
        self._there()
        held = self.holder == holder
        self.holder = None if held else self.holder
        return held

    def _there(self) -> None:
        if self.away:
            raise UserError("the store is away")
