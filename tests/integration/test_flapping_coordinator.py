"""librdkafka's assertion when a coordinator's connection breaks ends a reading, not the process."""

from __future__ import annotations

import time

import pytest
from flapping_proxy import flapping_proxy

from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_lab import Lab, LabTopology
from mm2slo_lab.lab_topology import Engine
from mm2slo_lab.ports import HOST, free_ports

pytestmark = [pytest.mark.lab, pytest.mark.long]

GROUPS = tuple(f"app-{number}" for number in range(16))
_PATIENCE = 120.0
"""Seconds; the assertion came after one to four."""
_ENDED = "the worker process ended with SIGABRT"


def test_group_offsets_outlive_the_end_of_the_process_that_asks() -> None:
    (port,) = free_ports(1)
    topology = LabTopology(
        clusters=("us",),
        flows=(),
        engine=Engine.NONE,
        broker_properties={"advertised.listeners": f"CLIENT://{HOST}:{port}"},
    )
    properties = {
        "bootstrap.servers": f"{HOST}:{port}",
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "200",
    }
    with (
        Lab.start(topology) as lab,
        flapping_proxy(port, lab.cluster("us").ports.client) as proxy,
        ClusterClient("us", properties) as client,
    ):
        ended = None
        end = time.monotonic() + _PATIENCE
        while ended is None and time.monotonic() < end:
            found = client.group_offsets_many(GROUPS, timeout=1.0)
            ended = next(
                (
                    each
                    for each in found.values()
                    if isinstance(each, KafkaOperationError) and _ENDED in each.detail
                ),
                None,
            )
        assert ended is not None, f"no process ended within {_PATIENCE:.0f} s: is the bug mended?"
        assert "Assertion `eonce->refcnt > 0' failed" in ended.detail
        proxy.stop_flapping()
        # No group has committed anything: an empty answer, of each.
        assert client.group_offsets_many(GROUPS, timeout=30.0) == {each: {} for each in GROUPS}
