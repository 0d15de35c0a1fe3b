"""The series of the process are those of prometheus-client's collectors."""

import os
import time
from pathlib import Path

import pytest
from prometheus_client import PlatformCollector, ProcessCollector

from mm2slo_core.catalogue import BY_NAME, GROUPS
from mm2slo_core.catalogue.service_metrics import (
    PROCESS_CPU_SECONDS_TOTAL,
    PROCESS_RESIDENT_MEMORY_BYTES,
    PROCESS_START_TIME_SECONDS,
)
from mm2slo_web.service_telemetry import process_series


def test_process_series_are_those_of_the_catalogue() -> None:
    found = process_series()
    assert found.keys() == set(GROUPS["Process"])
    ((_, memory),) = found[PROCESS_RESIDENT_MEMORY_BYTES]
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    assert 0.5 < memory / (pages * os.sysconf("SC_PAGE_SIZE")) < 2
    ((_, spent),) = found[PROCESS_CPU_SECONDS_TOTAL]
    assert 0 < spent <= sum(os.times()[:2]) + 0.1
    ((_, started),) = found[PROCESS_START_TIME_SECONDS]
    assert time.time() > started > 0
    assert process_series()[PROCESS_START_TIME_SECONDS] == [((), started)]


def test_process_series_equal_those_of_prometheus_client() -> None:
    expected = {
        BY_NAME[sample.name]: (tuple(sample.labels.values()), sample.value)
        for collector in (ProcessCollector(registry=None), PlatformCollector(registry=None))
        for family in collector.collect()
        for sample in family.samples
    }
    found = {metric: series for metric, (series,) in process_series().items()}
    assert found.keys() == expected.keys()
    for metric, (labels, value) in expected.items():
        assert found[metric][0] == labels
        assert found[metric][1] == pytest.approx(value, rel=0.02)
