"""Logs of a real MirrorMaker 2 with the shipped log4j 2 configuration, shipped to a fake HEC."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cli_process import run_mm2slo
from fake_hec import FakeHec, HecToken
from splunk_app import read_conf, search_condition

from mm2slo_alerts.alert_files import alert_groups
from mm2slo_alerts.alert_rules import AlertRule
from mm2slo_cli.alerts_preview import AlertState, render_alert, render_message
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig
from mm2slo_core.topology import Flow
from mm2slo_lab import lab_faults
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_faults import failed_tasks
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

DEPLOY = Path(__file__).parents[2] / "deploy"
LOG_CONFIG = DEPLOY / "logging/connect-log4j2-json.yaml"
APP = DEPLOY / "splunk/repl_observability/default"
SEARCHES = read_conf(APP / "savedsearches.conf", [])
MACROS = read_conf(APP / "macros.conf", [])
US_EU = Flow("us", "eu")
TOPIC = "worker-logs"
SECRET = "hun7er2"


@dataclass(frozen=True)
class WorkerLog:
    """The log of MirrorMaker 2 from its start to its stop, the task that failed, and what arrived.

    `envelopes` are what the fake HEC indexed, in order.
    """

    text: bytes
    failed: str
    envelopes: list[dict[str, Any]]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [each["event"] for each in self.envelopes]

    def of(self, action: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("event_action") == action]


@pytest.fixture(scope="module")
def log(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerLog]:
    folder = tmp_path_factory.mktemp("worker")
    file = folder / "mm2.json"
    with FakeHec({"token-1": HecToken(indexes=("repl_logs",))}) as fake:
        config = write_config(folder, fake.url, file)
        with run_mm2slo(folder / "logship", "logship", "run", "--config", str(config)):
            failed = run_worker(lab, file)
            text = file.read_bytes()
            fake.index.wait_for(lambda found: len(found) >= text.count(b"\n"), 60.0)
        yield WorkerLog(text, failed, list(fake.index.events))
    lab_faults.repair_mirror_task(lab, US_EU, TOPIC)


def write_config(folder: Path, url: str, file: Path) -> Path:
    token = folder / "token"
    token.write_text("token-1")
    token.chmod(0o600)
    section = {
        "endpoints": [url],
        "token_file": str(token),
        "sources": [{"paths": [str(file)]}],
        "index": "repl_logs",
        "state_dir": str(folder / "state"),
        "listen": "127.0.0.1:0",
    }
    clusters = {alias: {"bootstrap_servers": "localhost:1"} for alias in ("us", "eu")}
    flows = [{"flow": "us->eu"}, {"flow": "eu->us"}]
    path = folder / "mm2slo.yaml"
    path.write_text(json.dumps({"clusters": clusters, "flows": flows, "logship": section}))
    return path


def run_worker(lab: Lab, file: Path) -> str:
    """Restart MirrorMaker 2 with its log in *file*, fail a task, and stop; returns the task."""
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
    return failed


def fail_task(lab: Lab, file: Path) -> str:
    """Send records that are too large until a task fails.

    The first sync of topic settings removes the limit, and a task that is stopped does not fail.
    """
    us, eu = lab.cluster("us"), lab.cluster("eu")
    wait_for(lambda: bool(eu.admin.partition_count(f"us.{TOPIC}")), "a remote topic")

    def has_failed() -> bool:
        eu.admin.set_topic_configs(f"us.{TOPIC}", {"max.message.bytes": "20000"})
        produce(us.librdkafka(), TOPIC, Load(1, value_size=100_000))
        return b"Task is being killed" in file.read_bytes()

    wait_for(has_failed, "a failed task", poll=2.0)
    (failed,) = failed_tasks(lab, US_EU)
    return failed


def test_every_line_arrives_once_with_time_level_and_logger(log: WorkerLog) -> None:
    starts = [line.start() for line in re.finditer(rb"^.", log.text, re.MULTILINE)]
    assert len(starts) == log.text.count(b"\n") > 500
    assert [int(e["event_uid"].rpartition("-")[2]) for e in log.events] == starts
    for envelope in log.envelopes:
        event = envelope["event"]
        assert envelope["time"] == datetime.fromisoformat(event["timestamp"]).timestamp()
        assert event.keys() >= {"level", "service", "logger", "thread"}
        assert "parse_error" not in event


def test_failed_task_has_flow_connector_task_action_and_stack_trace(log: WorkerLog) -> None:
    (fields,) = log.of("task_failed")

    assert f"{fields['connector']}-{fields['task']}" == log.failed
    assert fields["flow"] == US_EU.label
    assert (fields["source_cluster"], fields["target_cluster"]) == ("us", "eu")
    assert fields["level"] == "ERROR"
    assert fields["error.type"] == "org.apache.kafka.connect.errors.ConnectException"
    assert fields["error.cause.type"].endswith("RecordTooLargeException")
    trace = fields["error.stack_trace"]
    assert trace.startswith("org.apache.kafka.connect.errors.ConnectException: ")
    assert "\n\tat org.apache.kafka.connect.runtime." in trace
    assert list(fields)[-1] == "error.stack_trace"


def test_saved_search_for_failed_tasks_selects_starts_and_the_failure(log: WorkerLog) -> None:
    search = SEARCHES["Failed tasks"]["search"]
    is_selected = search_condition(search, MACROS)
    (groups,) = re.findall(r" by ([\w ]+?) \|", search)
    selected = [each["event"] for each in log.envelopes if is_selected(each)]

    assert selected == [
        each for each in log.events if each.get("event_action") in {"task_failed", "task_started"}
    ]
    (fields,) = log.of("task_failed")
    assert fields in selected
    assert fields.keys() >= set(groups.split()) == {"flow", "connector", "task"}
    later = selected[selected.index(fields) + 1 :]
    key = [fields[name] for name in groups.split()]
    assert [each for each in later if [each[name] for name in groups.split()] == key] == []


def test_alert_links_to_the_failure_among_events_of_its_flow_and_time(log: WorkerLog) -> None:
    (failed,) = (e for e in log.envelopes if e["event"].get("event_action") == "task_failed")
    url = logs_button(US_EU, since=datetime.fromtimestamp(failed["time"] + 60.0, UTC))
    query = parse_qs(urlsplit(url).query, strict_parsing=True)
    is_selected = search_condition(query["q"][0], MACROS)
    earliest, latest = int(query["earliest"][0]), int(query["latest"][0])

    found = [e for e in log.envelopes if is_selected(e) and earliest <= e["time"] < latest]

    assert (
        {each["event"]["flow"] for each in found}
        == {"us->eu"}
        < {each["event"]["flow"] for each in log.envelopes}
    )
    shown = [each for each in found if each["event"].get("event_action") == "task_failed"]
    assert shown == [failed]


def logs_button(flow: Flow, since: datetime) -> str:
    """The URL of the button in Slack when `MM2TaskFailed` fires at *since*."""
    config = AlertingConfig(links=LinksConfig(splunk="https://splunk.example"))
    (rule,) = (
        rule
        for group in alert_groups(config.links)
        for rule in group.rules
        if isinstance(rule, AlertRule) and rule.alert == "MM2TaskFailed"
    )
    # A message is rendered as 12 minutes after the start of its alert.
    now = since + timedelta(minutes=12)
    message = render_message(render_alert(rule, flow), config, AlertState.FIRING, now)
    urls = {each["text"]: each["url"] for each in message["attachments"][0]["actions"]}
    return str(urls["Logs"])


def test_starts_of_tasks_and_herders_have_their_flow(log: WorkerLog) -> None:
    tasks = Counter(
        fields["flow"] for fields in log.of("task_started") if "Source" in fields["connector"]
    )

    assert tasks.keys() == {"us->eu", "eu->us"}
    assert {fields["flow"] for fields in log.of("worker_rebalance")} == {"us->eu", "eu->us"}
    assert len(log.of("process_starting")) == len(log.of("process_started")) == 1
    assert len(log.of("process_stopped")) == 1


def test_secret_in_printed_settings_is_redacted(log: WorkerLog) -> None:
    assert log.text.count(SECRET.encode()) >= 2
    assert SECRET not in str(log.envelopes)
    dumps = [event["message"] for event in log.events if "client.rack" in str(event)]
    assert any("client.rack = password=[redacted]" in each for each in dumps)


def test_flows_are_resolved_or_marked(log: WorkerLog) -> None:
    flows = Counter(
        event["flow"] for event in log.events if event["logger"].startswith("org.apache.kafka.")
    )

    assert flows.keys() == {"us->eu", "eu->us", "unresolved"}
