"""Pipeline panels with an unreachable cluster, malformed records, failed scrapes and messages."""

import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from alerting_lab import SCALE
from confluent_kafka import Producer
from fake_slack import FakeSlackWebhook
from lab_dashboards import FLOW, LabDashboards, observe_flow
from monitoring import alert, alertmanager, prometheus

from mm2slo_alerts.alertmanager_config import configuration
from mm2slo_core.config.alerting_config import AlertingConfig, SlackChannel, SloConfig
from mm2slo_core.records.mirror_records import Checkpoint
from mm2slo_core.topology import TopicPartition
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

BOARD = "mm2slo-pipeline"
FAILURES, LAST_SUCCESS = "Collection failures by reason", "Time since last success"
MALFORMED = "Malformed internal records"
SLACK = "Failed notifications"


def test_panels_show_unreachable_cluster(faulty_lab: Lab, tmp_path: Path, fresh_topic: str) -> None:
    us = faulty_lab.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    produce(us.librdkafka(), fresh_topic, Load(10))
    with observe_flow(faulty_lab, tmp_path, [fresh_topic]) as (_, seen):
        wait_for(
            lambda: seen.values(BOARD, FAILURES, "reason") == {("none",): 0}, "no failure", poll=2
        )
        faulty_lab.cluster("eu").stop()
        stopped = time.time()
        failed = {"cluster": "eu", "stage": "end_offsets", "reason": "unreachable"}
        wait_for(lambda: (seen.value(BOARD, FAILURES, **failed) or 0) > 0, "the failure", poll=0.5)

        def seconds_without() -> float:
            """Of the stage of eu that succeeded last, among the ten longest."""
            found = seen.values(BOARD, LAST_SUCCESS, "cluster", "stage")
            return min((each for (cluster, _), each in found.items() if cluster == "eu"), default=0)

        wait_for(lambda: seconds_without() > 15, "15 s without it", poll=0.5)
        since = seconds_without()
        # The last success is at most a round before the stop; what was read then may take a while.
        assert since < time.time() - stopped + 5
        found = seen.values(BOARD, FAILURES, "cluster", "reason")
        assert {cluster for cluster, _ in found} == {"eu"}
        assert ("eu", "unreachable") in found
        assert found["eu", "unreachable"] > 0
        # The source is not among the ten longest, or its time is short.
        assert (seen.value(BOARD, LAST_SUCCESS, cluster="us", stage="end_offsets") or 0) < 10
        assert seen.value("mm2slo-overview", "Flows by state", state="unknown") == 1


def test_panel_counts_malformed_internal_records(
    lab_factory: Callable[[], Lab], tmp_path: Path, fresh_topic: str
) -> None:
    lab = lab_factory()  # a separate lab: MirrorMaker 2 also reads these records when it starts
    lab.cluster("us").admin.create_topic(fresh_topic, 1)
    produce(lab.cluster("us").librdkafka(), fresh_topic, Load(10))
    with observe_flow(lab, tmp_path, [fresh_topic]) as (_, seen):
        uptime = 'max(max_over_time(up{job="mm2slo"}[15s])) == 1 unless absent(up offset 15s)'
        wait_for(lambda: seen.server.holds(uptime), "15 s of scrapes", poll=1)
        assert seen.values(BOARD, MALFORMED, "reason") == {("none",): 0}
        good = Checkpoint("damaged", TopicPartition(f"us.{fresh_topic}", 0), 1, 1)
        producer = Producer(lab.cluster("eu").librdkafka())
        future = struct.pack(">h", 7) + good.encode_value()[2:]
        for value in (future, b"\x00", b"\x00", b"\x00"):
            producer.produce("us.checkpoints.internal", value, good.encode_key(), partition=0)
        producer.flush(10)
        expected = {
            ("eu", "checkpoints", "unknown_version"): 1,
            ("eu", "checkpoints", "truncated"): 3,
        }

        def counts() -> dict[tuple[str, ...], int]:
            # Without decimals, as in the panel.
            found = seen.values(BOARD, MALFORMED, "cluster", "kind", "reason")
            return {key: round(each) for key, each in found.items()}

        wait_for(lambda: counts() == expected, f"{expected}", poll=1)


def test_panel_counts_message_refused_by_slack(tmp_path: Path) -> None:
    (tmp_path / "manager").mkdir()
    (tmp_path / "prometheus").mkdir()
    with FakeSlackWebhook(burst=20) as slack:
        secret = tmp_path / "webhook"
        secret.write_text(slack.url, encoding="utf-8")
        channel = SlackChannel(name="mirroring", webhook_url_file=str(secret))
        text = configuration(AlertingConfig(slack=(channel,)), SloConfig(), SCALE)
        with (
            alertmanager(tmp_path / "manager", text) as manager,
            prometheus(
                tmp_path / "prometheus", {"alertmanager": [manager.listen]}, scale=SCALE
            ) as server,
        ):
            seen = LabDashboards(server)
            wait_for(lambda: seen.value(BOARD, SLACK, integration="slack") == 0, "none", poll=0.5)
            slack.fail(status=403, body="invalid_token", times=1)
            labels = {"alertname": "MM2FlowStopped", "severity": "page", "flow": FLOW}
            manager.post(alert({**labels, "source": "us", "target": "eu"}, {"summary": "stopped"}))
            wait_for(lambda: bool(slack.refusals), "the refusal")

            def lost() -> int:
                return round(seen.value(BOARD, SLACK, integration="slack") or 0)

            wait_for(lambda: lost() == 1, "one that was lost", poll=0.5)
