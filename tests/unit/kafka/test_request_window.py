"""The number of requests in flight, by the measured latency."""

import heapq

import pytest

from mm2slo_kafka.request_sizes import MAX_IN_FLIGHT, RequestWindow


class Cluster:
    """Answers each request after *latency* seconds."""

    def __init__(self, latency: float) -> None:
        self.now = 0.0
        self._latency = latency
        self.peak = 0

    def read(self, groups: int, *, first: int = 16, within: float = 7.5) -> int:
        """The number of groups that were requested in time."""
        window = RequestWindow(first, within, lambda: self.now)
        remaining, answers = groups, [0.0][:0]
        while True:
            while remaining and window.is_open and len(answers) < window.size(remaining):
                remaining -= 1
                heapq.heappush(answers, self.now + self._latency)
            self.peak = max(self.peak, len(answers))
            if not answers:
                return groups - remaining
            self.now = heapq.heappop(answers)
            window.record_answer(self._latency)


@pytest.mark.parametrize(
    ("groups", "latency", "read", "peak"),
    [
        (200, 0.002, 200, 16),  # near: few at a time after the first answers
        (400, 0.2, 400, 22),  # 100 ms away, two round trips each
        (2000, 0.2, 2000, 107),
        (20_000, 0.2, 4_640, MAX_IN_FLIGHT),
    ],
)
def test_window_suffices_to_finish_in_time(
    groups: int, latency: float, read: int, peak: int
) -> None:
    cluster = Cluster(latency)
    assert cluster.read(groups) == pytest.approx(read, rel=0.02)
    assert cluster.peak == pytest.approx(peak, rel=0.1)
    assert cluster.now <= 7.5 + latency


def test_window_grows_by_one_with_each_answer() -> None:
    window = RequestWindow(1, 10.0, lambda: 0.0)
    sizes = []
    for _ in range(4):
        sizes.append(window.size(10_000))
        window.record_answer(1.0)
    assert sizes == [1, 2, 3, 4]


def test_window_closes_in_time() -> None:
    now = 0.0
    window = RequestWindow(1, 10.0, lambda: now)
    assert window.is_open
    now = 10.0
    assert not window.is_open
