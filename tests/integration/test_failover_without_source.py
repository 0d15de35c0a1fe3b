"""Readiness and recovery point without MirrorMaker 2, then without the source as well."""

import pytest
from exporter_watch import Scrape, watch
from topic_reader import count_copies

from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

FLOW = "us->eu"


def test_group_keeps_verdict_and_recovery_point_without_mirrormaker_and_source(
    faulty_lab: Lab, fresh_topic: str
) -> None:
    us, group = faulty_lab.cluster("us"), f"{fresh_topic}-group"
    us.admin.create_topic(fresh_topic, 1)
    produce(us.librdkafka(), fresh_topic, Load(40, partition=0))
    wait_for(lambda: count_copies(faulty_lab, fresh_topic) == 40, "the copies")
    commit(us.librdkafka(), fresh_topic, group, {0: 30})

    def redelivery(scrape: Scrape) -> list[float | None]:
        name = "mm2_failover_redelivery_records"
        return [scrape.value(name, group=group, bound=bound) for bound in ("lower", "upper")]

    settings = {"stall_after": "3s", "topics": [fresh_topic], "groups": [group]}
    with watch(faulty_lab, [FLOW], flow=settings) as seen:
        before = seen.until(
            lambda s: s.value("mm2_failover_ready", group=group) == 1, "a group that is ready"
        )
        faulty_lab.mm2.stop()
        produce(us.librdkafka(), fresh_topic, Load(15, partition=0))
        stopped = seen.until(
            lambda s: (
                s.state(FLOW) == "stopped"
                and s.value("mm2_failover_unreplicated_records", flow=FLOW) == 15
                and (s.value("mm2_failover_unreplicated_seconds", flow=FLOW) or 0) > 3
            ),
            "the backlog of a stopped flow",
        )
        assert stopped.value("mm2_failover_ready", group=group) == 1
        assert stopped.value("mm2_failover_group_unreplicated_records", group=group) == 15
        us.stop()
        down = seen.until(
            lambda s: (
                s.state(FLOW) == "unknown"
                and s.value("mm2_flow_lag_records", flow=FLOW) is None
                and (s.value("mm2_failover_unreplicated_age_seconds", flow=FLOW) or 0) > 5
            ),
            "an unreadable source",
        )
        assert down.value("mm2_failover_ready", group=group) == 1
        assert redelivery(down) == redelivery(before)
        assert down.value("mm2_failover_unreplicated_records", flow=FLOW) == 15
        assert (down.value("mm2_failover_unreplicated_seconds", flow=FLOW) or 0) > 3
        assert (down.value("mm2_failover_commits_age_seconds", group=group) or 0) > 5
    # Another process has not read the source, but the state records.
    with watch(faulty_lab, [FLOW], flow=settings) as seen:
        restored = seen.until(
            lambda s: s.value("mm2_failover_ready", group=group) is not None, "the last verdict"
        )
        assert restored.state(FLOW) == "unknown"
        assert restored.value("mm2_failover_ready", group=group) == 1
        assert redelivery(restored) == redelivery(before)
        assert restored.value("mm2_failover_unreplicated_records", flow=FLOW) == 15
        assert (restored.value("mm2_failover_unreplicated_age_seconds", flow=FLOW) or 0) > 5
        us.start()
        faulty_lab.mm2.start()
        seen.until(
            lambda s: s.value("mm2_failover_unreplicated_records", flow=FLOW) == 0,
            "the backlog to be replicated",
        )
