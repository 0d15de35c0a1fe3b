"""A topic that is deleted leaves the series of a flow alone."""

import logging
from functools import partial

import pytest
from exporter_watch import Scrape, watch

from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]

FLOW = "us->eu"
KEPT_PARTITIONS = 3


def has_topic(broker: Broker, topic: str) -> bool:
    return topic in broker.admin.topics()


@pytest.mark.parametrize("side", ["us", "eu"])
def test_deleted_topic_or_copy_drops_out_alone(
    lab: Lab, fresh_topic: str, side: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Offsets of the topic are requested until topics are listed again."""
    us, eu = lab.cluster("us"), lab.cluster("eu")
    kept, gone = f"{fresh_topic}.kept", f"{fresh_topic}.gone"
    for topic in (kept, gone):
        us.admin.create_topic(topic, KEPT_PARTITIONS, {"retention.ms": "-1"})
        wait_for(partial(has_topic, eu, f"us.{topic}"), "the copy")
        produce(us.librdkafka(), topic, Load(100))
    classes = [
        {"name": "kept", "topics": [kept], "threshold": "60s"},
        {"name": "others", "topics": [".*"], "threshold": "60s"},
    ]
    settings = {"metadata_interval": "30s", "start_offsets_interval": "1s"}
    flow = {"topics": [kept, gone], "freshness": classes, "slice": "1s"}

    def lags(scrape: Scrape) -> list[float]:
        return list(scrape.values("mm2_replication_lag_records", topic=kept).values())

    def errors(scrape: Scrape, reason: str) -> float:
        name = "mm2_exporter_collect_errors_total"
        return sum(scrape.values(name, cluster=side, reason=reason).values())

    caplog.set_level(logging.INFO)
    with watch(lab, [FLOW], flow=flow, exporter=settings) as seen:
        seen.until_ready()
        before = seen.until(
            lambda s: (
                len(s.values("mm2_replicated_source_offset", topic=gone)) == KEPT_PARTITIONS
                and lags(s) == [0] * KEPT_PARTITIONS
            ),
            "caught-up topics",
        )
        caplog.clear()
        lab.cluster(side).admin.delete_topic(gone if side == "us" else f"us.{gone}")
        first = len(seen.scrapes)
        after = seen.after_cycles(10)  # more than between two listings
        assert [lags(s) for s in seen.scrapes[first:]] == [[0] * KEPT_PARTITIONS] * len(
            seen.scrapes[first:]
        )
        good, total, unknown = (
            new - old
            for old, new in zip(
                before.sli(FLOW, "data_freshness", "kept"),
                after.sli(FLOW, "data_freshness", "kept"),
                strict=True,
            )
        )
        assert (good, unknown) == (total, 0)
        assert total > 0
        for reason in ("unreachable", "timeout", "other"):
            assert errors(after, reason) == errors(before, reason)
    assert [m for m in caplog.messages if "unreachable" in m or "recovered" in m] == []
