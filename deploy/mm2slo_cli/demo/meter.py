"""What a flow did lately, from its growing counters (pure)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_cli.demo.latency import latency
from mm2slo_core.selection import TopicRole

if TYPE_CHECKING:
    from mm2slo_cli.demo.latency import Latency
    from mm2slo_exporter.state.model import FlowReport, LatencyHistogram

_RATE_WINDOW = 10.0
_LATENCY_WINDOW = 60.0


@dataclass(frozen=True, slots=True)
class Throughput:
    """Records per second: written to the source, and copied to the target."""

    source: float
    target: float


@dataclass(frozen=True, slots=True)
class Recent:
    """Throughput of ten seconds and latencies of a minute; None for what was not seen in it."""

    throughput: Throughput | None = None
    canary: Latency | None = None
    heartbeat: Latency | None = None


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    source: int
    target: int
    canary: tuple[int, ...]
    heartbeat: tuple[int, ...]


class Meter:
    """Remembers one flow's counters for a minute."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    def read(self, report: FlowReport) -> Recent:
        """Take a report, a known one any number of times, and say what happened up to it."""
        now = _sample(report)
        if not self._samples or now.at > self._samples[-1].at:
            self._samples.append(now)
        # The newest sample before the window stays: it is where the window starts.
        while len(self._samples) > 1 and self._samples[1].at <= now.at - _LATENCY_WINDOW:
            self._samples.popleft()
        minute = self._samples[0]
        whole = minute.at > now.at - _LATENCY_WINDOW  # younger than a minute: all there is
        return Recent(
            self._throughput(now),
            latency(now.canary if whole else _less(now.canary, minute.canary)),
            latency(now.heartbeat if whole else _less(now.heartbeat, minute.heartbeat)),
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
    topics = [topic for topic in report.topics if topic.pair.role is TopicRole.DATA]
    return _Sample(
        at=report.at,
        source=sum(topic.source_records_total for topic in topics),
        target=sum(topic.replicated_records_total for topic in topics),
        canary=_counts(report.canary_latency),
        heartbeat=_counts(report.heartbeat_latency),
    )


def _counts(histogram: LatencyHistogram | None) -> tuple[int, ...]:
    return () if histogram is None else histogram.counts


def _less(now: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    """The difference per bucket; a histogram that was not there before started at zero."""
    return tuple(a - b for a, b in zip(now, before, strict=True)) if before else now
