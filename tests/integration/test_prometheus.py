"""Prometheus scrapes every metric of the catalogue from the exporter."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from exporter_watch import Watch, watch
from transactional_traffic import consume_and_commit

from mm2slo_core import catalogue
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_monitoring import Cadence, Prometheus, prometheus
from mm2slo_lab.lab_topology import LabError
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]


def wait_for_series(server: Prometheus, query: str, timeout: float = 180.0) -> list[dict[str, Any]]:
    """Wait until *query* returns series; empty after *timeout* seconds."""
    found: list[dict[str, Any]] = []

    def has_series() -> bool:
        found[:] = server.query(query)
        return bool(found)

    with suppress(LabError):
        wait_for(has_series, query, timeout)
    return found


@pytest.fixture
def seen(lab: Lab, fresh_topic: str) -> Iterator[Watch]:
    """An exporter with a value for every metric of the catalogue."""
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 2, {"retention.ms": "3600000"})
    produce(us.librdkafka(), fresh_topic, Load(500))
    consume_and_commit(us.librdkafka(), fresh_topic, f"{fresh_topic}-group", 500)
    lab.mm2.wait_mirroring()
    with watch(lab, ["us->eu"], flow={"isolation": "read_committed"}) as found:
        found.until_ready()
        copy = f"us.{fresh_topic}"
        wait_for(lambda: eu.admin.partition_count(copy) > 0, "the copy")
        eu.admin.set_topic_configs(copy, {"max.message.bytes": "1000000"})
        found.until(lambda s: s.values("mm2_topic_config_drift"), "a drift of settings")
        found.until(lambda s: s.values("mm2_checkpoint_age_seconds"), "a checkpoint")
        produce(us.librdkafka(), fresh_topic, Load(500))
        yield found


def test_every_metric_of_catalogue_is_scraped(seen: Watch, tmp_path: Path) -> None:
    target = seen.url.removeprefix("http://")
    with prometheus(tmp_path, {"mm2slo": [target]}, cadence=Cadence(scrape=1.0)) as server:
        assert wait_for_series(server, 'up{job="mm2slo"} == 1')
        # These need a blocked group, one that would skip records, a connector that overrides a
        # setting, and a backlog.
        missing = [
            metric.name
            for metric in catalogue.ALL
            if metric
            not in {
                catalogue.FAILOVER_BLOCKED,
                catalogue.FAILOVER_SKIPPED_RECORDS,
                catalogue.FLOW_SETTING_OVERRIDDEN,
                catalogue.REPLICATION_PROGRESS_TIMESTAMP_SECONDS,
            }
            and not wait_for_series(server, metric.sample_names[-1], timeout=60)
        ]
        assert missing == []
        [up_to_date] = wait_for_series(
            server, 'sum(mm2_replicated_source_offset{topic!="heartbeats"})'
        )
        [published] = wait_for_series(server, 'sum(mm2_source_end_offset{topic!="heartbeats"})')
        assert float(up_to_date["value"][1]) <= float(published["value"][1])
        [states] = wait_for_series(server, 'sum(mm2_flow_state{flow="us->eu"})')
        assert states["value"][1] == "1"
        one_second = wait_for_series(server, "rate(mm2_canary_received_total[10s]) > 0.5")
        assert one_second, "about one canary a second"
