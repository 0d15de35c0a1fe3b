"""Logs of a real MirrorMaker 2 with the shipped log4j 2 configuration, as events."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from log_shipping import parse_log
from splunk_app import read_conf

from mm2slo_core.topology import Flow
from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab import faults
from mm2slo_lab.condition_wait import wait_for
from mm2slo_lab.task_states import failed_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_lab import Lab
    from mm2slo_logship.events.parsed_event import ParsedEvent

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

DEPLOY = Path(__file__).parents[2] / "deploy"
LOG_CONFIG = DEPLOY / "logging/connect-log4j2-json.yaml"
SEARCHES = DEPLOY / "splunk/repl_observability/default/savedsearches.conf"
US_EU = Flow("us", "eu")
TOPIC = "worker-logs"
SECRET = "hun7er2"


@dataclass(frozen=True)
class WorkerLog:
    """The log files of MirrorMaker 2 from its start to its stop, and the task that failed."""

    text: bytes
    events: list[ParsedEvent]
    failed: str

    def of(self, action: str) -> list[dict[str, object]]:
        found = [event.fields for event in self.events]
        return [fields for fields in found if fields.get("event_action") == action]


@pytest.fixture(scope="module")
def log(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerLog]:
    file = tmp_path_factory.mktemp("worker") / "mm2.json"
    us, process, spec = lab.cluster("us"), lab.mm2.process, lab.mm2.process.spec
    options = (f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()}", f"-Dmm2slo.log.file={file}")
    place = spec.command.index(lab.runtime.log_option)
    command = (*spec.command[:place], *options, *spec.command[place + 1 :])
    # Kafka prints settings that are no passwords as they are.
    lab.mm2.configure({"us.consumer.client.rack": f"password={SECRET}"})
    try:
        process.spec = replace(spec, command=command)
        us.admin.create_topic(TOPIC, 1)
        produce(us.librdkafka(), TOPIC, Load(1))
        lab.mm2.restart()
        failed = fail_task(lab, file)
        lab.mm2.stop()
    finally:
        lab.mm2.configure({})
        process.spec = spec
    text = file.read_bytes()
    yield WorkerLog(text, parse_log(text), failed)
    faults.repair_task(lab, US_EU, TOPIC)


def fail_task(lab: Lab, file: Path) -> str:
    """Send records that are too large until a task fails.

    The first sync of topic settings removes the limit, and a task that is stopped does not fail.
    """
    us, eu = lab.cluster("us"), lab.cluster("eu")
    wait_for(lambda: bool(eu.admin.partition_count(f"us.{TOPIC}")), "a remote topic", 60.0)

    def has_failed() -> bool:
        eu.admin.set_topic_configs(f"us.{TOPIC}", {"max.message.bytes": "20000"})
        produce(us.librdkafka(), TOPIC, Load(1, value_size=100_000))
        return b"Task is being killed" in file.read_bytes()

    wait_for(has_failed, "a failed task", 180.0, poll=2.0)
    (failed,) = failed_tasks(lab, US_EU)
    return failed


def test_every_line_becomes_one_event_with_time_level_and_logger(log: WorkerLog) -> None:
    assert len(log.events) == log.text.count(b"\n") > 500
    for event in log.events:
        assert event.time is not None
        assert event.fields.keys() >= {"timestamp", "level", "service", "logger", "thread"}
        assert "parse_error" not in event.fields
    assert b"".join(log.text[e.start : e.end] for e in log.events) == log.text


def test_failed_task_has_flow_connector_task_action_and_stack_trace(log: WorkerLog) -> None:
    (fields,) = log.of("task_failed")

    assert f"{fields['connector']}-{fields['task']}" == log.failed
    assert fields["flow"] == US_EU.label
    assert (fields["source_cluster"], fields["target_cluster"]) == ("us", "eu")
    assert fields["level"] == "ERROR"
    assert fields["error.type"] == "org.apache.kafka.connect.errors.ConnectException"
    assert str(fields["error.cause.type"]).endswith("RecordTooLargeException")
    trace = str(fields["error.stack_trace"])
    assert trace.startswith("org.apache.kafka.connect.errors.ConnectException: ")
    assert "\n\tat org.apache.kafka.connect.runtime." in trace
    assert list(fields)[-1] == "error.stack_trace"


def test_saved_search_for_failed_tasks_matches_the_event(log: WorkerLog) -> None:
    search = read_conf(SEARCHES, [])["Failed tasks"]["search"]
    (listed,) = re.findall(r"event_action IN \((.*?)\)", search)
    (groups,) = re.findall(r" by ([\w ]+?) \|", search)
    (fields,) = log.of("task_failed")

    assert fields["event_action"] in listed.split(", ")
    assert fields.keys() >= set(groups.split()) == {"flow", "connector", "task"}


def test_starts_of_tasks_and_herders_have_their_flow(log: WorkerLog) -> None:
    tasks = Counter(
        fields["flow"] for fields in log.of("task_started") if "Source" in str(fields["connector"])
    )

    assert tasks.keys() == {"us->eu", "eu->us"}
    assert {fields["flow"] for fields in log.of("worker_rebalance")} == {"us->eu", "eu->us"}
    assert len(log.of("process_starting")) == len(log.of("process_started")) == 1
    assert len(log.of("process_stopped")) == 1


def test_secret_in_printed_settings_is_redacted(log: WorkerLog) -> None:
    assert log.text.count(SECRET.encode()) >= 2
    for event in log.events:
        assert SECRET not in str(event.fields)
    dumps = [str(e.fields["message"]) for e in log.events if "client.rack" in str(e.fields)]
    assert any("client.rack = password=[redacted]" in each for each in dumps)


def test_flows_are_resolved_or_marked(log: WorkerLog) -> None:
    flows = Counter(
        event.fields["flow"]
        for event in log.events
        if str(event.fields["logger"]).startswith("org.apache.kafka.")
    )

    assert flows.keys() == {"us->eu", "eu->us", "unresolved"}
