"""librdkafka's assertion on a broken coordinator connection ends one request, not the process."""

import time

import pytest
from flapping_proxy import flapping_proxy

from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import HOST, free_ports
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

GROUPS = tuple(f"app-{number}" for number in range(16))
_TIMEOUT = 120.0
"""Seconds; the assertion fails after 1 to 4."""
_SIGABRT_MESSAGE = "the worker process ended with SIGABRT"


def test_group_offsets_with_flapping_coordinator_do_not_block_exit() -> None:
    (port,) = free_ports(1)
    topology = LabTopology(
        clusters=("us",),
        flows=(),
        engine=LabEngine.NONE,
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
        end = time.monotonic() + _TIMEOUT
        while ended is None and time.monotonic() < end:
            found = client.group_offsets(GROUPS, timeout=1.0)
            ended = next(
                (
                    each.found
                    for each in found.values()
                    if isinstance(each.found, KafkaOperationError)
                    and _SIGABRT_MESSAGE in each.found.detail
                ),
                None,
            )
        assert ended is not None, f"no process ended within {_TIMEOUT:.0f} s: is the bug fixed?"
        assert "Assertion `eonce->refcnt > 0' failed" in ended.detail
        proxy.stop_flapping()
        # No group has committed offsets.
        found = client.group_offsets(GROUPS, timeout=30.0)
        assert {group: each.found for group, each in found.items()} == {
            group: {} for group in GROUPS
        }
