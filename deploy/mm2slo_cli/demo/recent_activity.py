"""Recent throughput and latency of a flow, from its counters (pure)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_cli.demo.latency_percentiles import latency_percentiles

if TYPE_CHECKING:
    from mm2slo_cli.demo.latency_percentiles import LatencyPercentiles
    from mm2slo_exporter.state.flow_report import FlowReport, LatencyHistogram

_RATE_WINDOW = 10.0
_LATENCY_WINDOW = 60.0


@dataclass(frozen=True, slots=True)
class Throughput:
    """Records per second, produced to the source and replicated to the target."""

    source: float
    target: float


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """Throughput over ten seconds and latencies over a minute; None if unknown."""

    throughput: Throughput | None = None
    canary: LatencyPercentiles | None = None
    heartbeat: LatencyPercentiles | None = None


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    source: int
    target: int
    canary: tuple[int, ...]
    heartbeat: tuple[int, ...]


class ActivityMeter:
    """Keeps the counters of a flow for a minute."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    def read(self, report: FlowReport) -> RecentActivity:
        """Add a report and return the activity up to it; a report may be added repeatedly."""
        now = _sample(report)
        if not self._samples or now.at > self._samples[-1].at:
            self._samples.append(now)
        # The newest sample before the window is its start.
        while len(self._samples) > 1 and self._samples[1].at <= now.at - _LATENCY_WINDOW:
            self._samples.popleft()
        minute = self._samples[0]
        is_short = minute.at > now.at - _LATENCY_WINDOW  # less than a minute of data: use all of it
        return RecentActivity(
            self._throughput(now),
            latency_percentiles(now.canary if is_short else _less(now.canary, minute.canary)),
            latency_percentiles(
                now.heartbeat if is_short else _less(now.heartbeat, minute.heartbeat)
            ),
        )

    def _throughput(self, now: _Sample) -> Throughput | None:
        start = None
        for sample in self._samples:
            if start is None or sample.at <= now.at - _RATE_WINDOW:
                start = sample
        if start is None or start.at >= now.at:
            return None
        seconds = now.at - start.at
        return Throughput(
            (now.source - start.source) / seconds, (now.target - start.target) / seconds
        )


def _sample(report: FlowReport) -> _Sample:
    return _Sample(
        at=report.at,
        source=report.totals.source_records_total,
        target=report.totals.replicated_records_total,
        canary=_counts(report.canary_latency),
        heartbeat=_counts(report.heartbeat_latency),
    )


def _counts(histogram: LatencyHistogram | None) -> tuple[int, ...]:
    return () if histogram is None else histogram.counts


def _less(now: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    """The difference per bucket; a histogram that did not exist before started at 0."""
    return tuple(a - b for a, b in zip(now, before, strict=True)) if before else now
