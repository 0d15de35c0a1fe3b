"""The exporter with idle clusters."""

import pytest
from exporter_watch import watch

from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]


def test_lag_of_idle_flow_is_exact(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 3, {})
    # Tasks restart when a topic is found, which may replicate records twice.
    wait_for(lambda: eu.admin.partition_count(f"us.{fresh_topic}") == 3, "the copy")
    produce(us.librdkafka(), fresh_topic, Load(1000))
    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        at_rest = seen.until(
            lambda s: (
                sum(s.values("mm2_replicated_source_offset", topic=fresh_topic).values()) == 1000
            ),
            "1000 replicated records",
        )
        assert set(at_rest.values("mm2_replication_lag_records", topic=fresh_topic).values()) == {0}
        assert set(at_rest.values("mm2_replication_lag_seconds", topic=fresh_topic).values()) == {0}
        ends = at_rest.values("mm2_target_end_offset", topic=fresh_topic)
        independent = eu.admin.end_offsets(f"us.{fresh_topic}")
        assert sorted(ends.values()) == sorted(independent.values())
        assert sum(independent.values()) == 1000
