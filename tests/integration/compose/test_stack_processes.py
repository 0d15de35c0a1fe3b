"""The containers of docker-compose.yml as processes, with their commands, files and environment.

They run against the shared lab, as they would beside a team's own clusters: only MirrorMaker 2's
properties file and its log are the lab's, and what the printed table lists is substituted. The
demo's clusters are in test_demo_processes.py. Grafana is left out: Debian does not package it.
"""

import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from compose_stack import COMPOSE, STACK, ComposeProcesses, compose_model, shipped_events
from exporter_watch import Scrape
from log_shipping import parse_log

from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import request_json, wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

FLOWS = ("us->eu", "eu->us")
JOBS = {"mm2slo", "prometheus", "alertmanager", "mm2slo-logship", "mm2slo-report"}
NOT_STARTED = {"us", "eu", "mirrormaker", "grafana"}
STARTED = (
    *("slack", "splunk", "alertmanager", "prometheus", "report", "logship", "traffic", "exporter"),
)
OURS = ("exporter", "report", "slack", "traffic", "logship", "splunk")
TOPIC, RECORDS = "compose-records", 150
# Of a flow that no alert of the real exporter inhibits.
TITLE = "Flow ap->sa has stopped."
PATIENCE = 240.0


@pytest.fixture(scope="module")
def stack(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeProcesses]:
    logs = lab.runtime.log_file("mm2").parent
    services = compose_model(COMPOSE, {"MM2SLO_MM2_LOGS": str(logs)})
    shown = {
        name: each
        for name, each in services.items()
        if name not in NOT_STARTED and each.definition.get("profiles", ["logs"]) == ["logs"]
    }
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(TOPIC, 1)
    produce(us.librdkafka(), TOPIC, Load(RECORDS))
    mm2 = (lab.runtime.root / "mm2.properties").read_text(encoding="ascii")
    with ComposeProcesses(shown, tmp_path_factory.mktemp("compose")) as processes:
        # Its ports are not among those of the files.
        processes.replace("/etc/mm2slo/mm2.properties", mm2.replace("127.0.0.1", "localhost"))
        print(processes.table())
        for name in ("init", "config", "logs-config"):
            done = processes.run(name)
            assert done.returncode == 0, done.stdout + done.stderr
        # The exporter's first poll then finds the position, and not one 15 s later.
        wait_for(
            lambda: sum(eu.admin.end_offsets(f"us.{TOPIC}").values()) == RECORDS,
            "copied records",
            PATIENCE,
        )
        for name in STARTED:
            processes.start(name)
        fire(processes)
        yield processes


def fire(stack: ComposeProcesses) -> None:
    """Post a page as Prometheus does; Alertmanager groups it for ten seconds."""
    stack.wait_healthy("alertmanager")
    now = datetime.now(UTC)
    labels = {"alertname": "MM2FlowStopped", "severity": "page", "flow": "ap->sa"}
    page = {
        "labels": {**labels, "source": "ap", "target": "sa", "channel": "mm2-alerts"},
        "annotations": {"summary": TITLE, "impact": "No new records.", "action": "Start it."},
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(minutes=5)).isoformat(),
    }
    request_json(stack.url("alertmanager", 9093, "/api/v2/alerts"), "POST", [page])


def test_exporter_reports_flows_and_position_of_mounted_mm2_properties(
    stack: ComposeProcesses,
) -> None:
    url = stack.url("exporter", 9469, "")
    stack.wait_healthy("exporter")
    wait_for(
        lambda: {Scrape.fetch(url).state(flow) for flow in FLOWS} <= {"running", "idle"},
        "two working flows",
        PATIENCE,
    )
    wait_for(
        lambda: Scrape.fetch(url).value("mm2_replicated_source_offset", topic=TOPIC) == RECORDS,
        f"{RECORDS} replicated records",
        PATIENCE,
    )


def test_traffic_produces_to_its_topics(stack: ComposeProcesses, lab: Lab) -> None:
    stack.wait_log("traffic", "producing to 4 topics")
    clicks = lab.cluster("eu").admin
    wait_for(lambda: sum(clicks.end_offsets("clicks").values()) > 0, "clicks", PATIENCE)


def test_prometheus_scrapes_every_job_and_loads_generated_rules(stack: ComposeProcesses) -> None:
    stack.wait_healthy("prometheus")
    url = stack.url("prometheus", 9090, "/api/v1")

    def up() -> set[str]:
        found = request_json(f"{url}/query?query=up==1")["data"]["result"]
        return {each["metric"]["job"] for each in found}

    wait_for(lambda: up() == JOBS, "all jobs to be scraped", PATIENCE)
    groups = request_json(f"{url}/rules")["data"]["groups"]
    assert {"mm2slo-burn", "mm2slo-causes-flow"} <= {group["name"] for group in groups}
    managers = request_json(f"{url}/alertmanagers")["data"]["activeAlertmanagers"]
    assert [each["url"] for each in managers] == [
        f"{stack.url('alertmanager', 9093, '')}/api/v2/alerts".replace("127.0.0.1", "localhost")
    ]


def test_report_serves_objectives_of_both_flows_to_the_created_token(
    stack: ComposeProcesses,
) -> None:
    stack.wait_healthy("report")
    token = Path(stack.local("report", "/run/secrets/report-token")).read_text(encoding="ascii")
    request = urllib.request.Request(
        stack.url("report", 9470, "/slo?limit=100"), headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        entries = json.load(answer)["entries"]
    assert {each["flow"]["name"] for each in entries} == set(FLOWS)


def test_alertmanager_delivers_to_slack_service_which_shows_the_message(
    stack: ComposeProcesses,
) -> None:
    stack.wait_healthy("slack")
    stack.wait_log("slack", f"🔥 FIRING page · {TITLE}")
    with urllib.request.urlopen(stack.url("slack", 8080), timeout=60) as answer:
        page = answer.read().decode()
    assert page.count("FIRING page") == 1
    assert "No new records." in page


def test_addresses_lists_every_published_port(stack: ComposeProcesses) -> None:
    printed = stack.run("addresses").stdout
    for port in (8080, 9470, 9469, 3000):
        assert stack.url("addresses", port) in printed


def test_second_init_keeps_secrets(stack: ComposeProcesses) -> None:
    done = stack.run("init")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", OURS[:4])
def test_own_service_ends_with_code_0_at_sigterm(stack: ComposeProcesses, name: str) -> None:
    assert stack.stop(name) == 0, stack.log(name)


def test_logship_ships_each_line_of_services_and_mirrormaker_once(
    stack: ComposeProcesses, lab: Lab
) -> None:
    """The stand-in for Splunk shows what it received."""
    stack.wait_healthy("logship")
    folder = Path(stack.local("exporter", "/var/log/mm2slo"))
    expected = {
        service: (folder / f"{service}.log").read_text(encoding="utf-8").count("\n")
        for service in ("repl-exporter", "repl-api")
    }
    assert all(count >= 2 for count in expected.values()), expected  # the start and the stop
    # The last event ends with the next one.
    expected["mm2-worker"] = len(parse_log(lab.runtime.log_file("mm2").read_bytes())) - 1

    def arrived() -> Counter[str]:
        return Counter(event["service"] for event in shipped_events(stack.log("splunk")))

    wait_for(
        lambda: all(arrived()[name] >= count for name, count in expected.items()),
        f"{expected} events",
        PATIENCE,
    )
    found = arrived()
    del expected["mm2-worker"]
    assert {name: found[name] for name in expected} == expected
    uids = Counter(event["event_uid"] for event in shipped_events(stack.log("splunk")))
    assert set(uids.values()) == {1}


@pytest.mark.parametrize("name", OURS[4:])
def test_log_service_ends_with_code_0_at_sigterm(stack: ComposeProcesses, name: str) -> None:
    assert stack.stop(name) == 0, stack.log(name)


@pytest.fixture
def own_stack(tmp_path: Path) -> ComposeProcesses:
    """The stack alone, with a team's folders, which lack files."""
    config, secrets = tmp_path / "own", tmp_path / "secrets"
    config.mkdir()
    secrets.mkdir()
    (config / "mm2slo.yaml").write_bytes((STACK.parent / "config" / "mm2slo.yaml").read_bytes())
    (secrets / "report-token").write_text("token", encoding="ascii")
    (secrets / "grafana-password").touch()
    folders = {"MM2SLO_CONFIG_FOLDER": str(config), "MM2SLO_SECRETS_FOLDER": str(secrets)}
    return ComposeProcesses(compose_model(STACK, folders), tmp_path)


def test_stack_without_secret_files_names_each_missing_one(own_stack: ComposeProcesses) -> None:
    done = own_stack.run("init")
    assert done.returncode == 1
    assert [line.split()[2].rpartition("/")[2] for line in done.stderr.splitlines()] == [
        "slack-webhook-url",
        "report-tokens",
        "grafana-password",
    ]


def test_profile_logs_without_url_and_token_names_both(own_stack: ComposeProcesses) -> None:
    done = own_stack.run("logs-config")
    assert (done.returncode, done.stdout) == (1, "")
    url, token = done.stderr.splitlines()
    assert url.startswith("MM2SLO_HEC_URL is not set; expected the URL of ")
    assert "/secrets/splunk-hec-token is missing" in token


def test_stack_without_mm2_file_names_it_and_exits_with_2(own_stack: ComposeProcesses) -> None:
    done = own_stack.run("config")
    assert done.returncode == 2
    assert own_stack.local("config", "/etc/mm2slo/mm2.properties") in done.stderr
    assert "Traceback" not in done.stderr
