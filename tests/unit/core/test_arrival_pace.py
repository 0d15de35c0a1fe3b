"""How often end offsets are read for arrival times."""

import math

import pytest

from mm2slo_core.cluster_writes import (
    MAX_PARTITIONS,
    REQUEST_PARTITIONS,
    REQUESTS_PER_SECOND,
    arrival_interval,
    shortest_interval,
)
from mm2slo_kafka.offset_requests import PART_SIZE


@pytest.mark.parametrize("partitions", [1, 200, 201, 1_000, 1_001, 4_999, MAX_PARTITIONS])
def test_requests_to_a_broker_stay_below_the_cap(partitions: int) -> None:
    requests = math.ceil(partitions / PART_SIZE)
    assert requests / shortest_interval(partitions) <= REQUESTS_PER_SECOND


def test_interval_grows_with_partitions() -> None:
    sizes = (1, 1_000, 2_000, MAX_PARTITIONS)
    assert [shortest_interval(each) for each in sizes] == [0.2, 0.2, 0.4, 1.0]
    assert REQUEST_PARTITIONS == PART_SIZE


@pytest.mark.parametrize(
    ("partitions", "cpu", "expected"), [(1_000, 0.001, 0.2), (1_000, 0.014, 0.4), (1, 0.045, 1.0)]
)
def test_interval_keeps_cpu_within_five_percent(
    partitions: int, cpu: float, expected: float
) -> None:
    assert arrival_interval(partitions, cpu) == pytest.approx(expected, rel=0.001)
