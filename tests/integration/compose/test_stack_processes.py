"""Each container of docker-compose.yml as a process, with its command, files and environment.

Two clusters, MirrorMaker 2 and all of mm2slo's services run from the shipped files. Only what the
printed table lists is substituted. Grafana is left out: Debian does not package it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from compose_stack import COMPOSE, STACK, ComposeProcesses, compose_model
from exporter_watch import Scrape

from mm2slo_lab.condition_wait import wait_for
from mm2slo_lab.monitoring.monitoring_server import get_json, post_json

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("compose")]

FLOWS = ("us->eu", "eu->us")
JOBS = {"mm2slo", "prometheus", "alertmanager", "mm2slo-report"}
OURS = ("exporter", "report", "slack", "traffic")
STARTED = (
    *("us", "eu", "slack", "alertmanager", "prometheus", "report", "exporter"),
    *("mirrormaker", "traffic"),
)
# Of a flow that no alert of the real exporter inhibits.
TITLE = "Flow ap->sa has stopped."
PATIENCE = 240.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeProcesses]:
    services = compose_model(COMPOSE, {})
    shown = {
        name: each
        for name, each in services.items()
        if each.definition.get("profiles", ["audit"]) == ["audit"]
    }
    with ComposeProcesses(shown, tmp_path_factory.mktemp("compose")) as processes:
        print(processes.table())
        for name in ("init", "config"):
            done = processes.run(name)
            assert done.returncode == 0, done.stdout + done.stderr
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
    post_json(stack.url("alertmanager", 9093, "/api/v2/alerts"), [page])


def test_exporter_reports_flows_of_mounted_mm2_properties_as_running(
    stack: ComposeProcesses,
) -> None:
    url = stack.url("exporter", 9469, "")

    def states() -> set[str | None]:
        scrape = Scrape.fetch(url)
        return {scrape.state(flow) for flow in FLOWS}

    stack.wait_healthy("exporter")
    wait_for(lambda: states() == {"running"}, "two running flows", PATIENCE)
    stack.wait_log("traffic", "producing to 4 topics")
    wait_for(
        lambda: (Scrape.fetch(url).value("mm2_replicated_source_offset", topic="clicks") or 0) > 0,
        "replicated records",
        PATIENCE,
    )


def test_prometheus_scrapes_every_job_and_loads_generated_rules(stack: ComposeProcesses) -> None:
    stack.wait_healthy("prometheus")
    url = stack.url("prometheus", 9090, "/api/v1")

    def up() -> set[str]:
        found = get_json(f"{url}/query?query=up==1")["data"]["result"]
        return {each["metric"]["job"] for each in found}

    wait_for(lambda: up() == JOBS, "all jobs to be scraped", PATIENCE)
    groups = get_json(f"{url}/rules")["data"]["groups"]
    assert {"mm2slo-burn", "mm2slo-recent-alerts"} <= {group["name"] for group in groups}
    managers = get_json(f"{url}/alertmanagers")["data"]["activeAlertmanagers"]
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
    with urllib.request.urlopen(request, timeout=10) as answer:
        entries = json.load(answer)["entries"]
    assert {each["flow"]["name"] for each in entries} == set(FLOWS)


def test_alertmanager_delivers_to_slack_service_which_shows_the_message(
    stack: ComposeProcesses,
) -> None:
    stack.wait_healthy("slack")
    stack.wait_log("slack", f"🔥 FIRING page · {TITLE}")
    with urllib.request.urlopen(stack.url("slack", 8080), timeout=10) as answer:
        page = answer.read().decode()
    assert page.count("FIRING page") == 1
    assert "No new records." in page


def test_addresses_lists_every_published_port(stack: ComposeProcesses) -> None:
    printed = stack.run("addresses").stdout
    for name, port in (("slack", 8080), ("report", 9470), ("exporter", 9469), ("grafana", 3000)):
        assert stack.url(name, port) in printed


def test_second_init_keeps_secrets(stack: ComposeProcesses) -> None:
    done = stack.run("init")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.long
def test_audit_service_logs_a_clean_verdict_and_ends_with_code_0_at_sigterm(
    stack: ComposeProcesses,
) -> None:
    # As the image's build does, which keeps the jars.
    subprocess.run([sys.executable, "-m", "mm2slo_cli", "audit", "prepare"], check=True)
    stack.start("audit")
    stack.wait_log("audit", "verdict: clean")
    assert stack.stop("audit") == 0, stack.log("audit")


@pytest.mark.parametrize("name", OURS)
def test_own_service_ends_with_code_0_at_sigterm(stack: ComposeProcesses, name: str) -> None:
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
    services = compose_model(STACK, folders)
    model = {name: each for name, each in services.items() if "profiles" not in each.definition}
    return ComposeProcesses(model, tmp_path)


def test_stack_without_secret_files_names_each_missing_one(own_stack: ComposeProcesses) -> None:
    done = own_stack.run("init")
    assert done.returncode == 1
    assert [line.split()[2].rpartition("/")[2] for line in done.stderr.splitlines()] == [
        "slack-webhook-url",
        "report-tokens",
        "grafana-password",
    ]


def test_stack_without_mm2_file_names_it_and_exits_with_2(own_stack: ComposeProcesses) -> None:
    done = own_stack.run("config")
    assert done.returncode == 2
    assert own_stack.local("config", "/etc/mm2slo/mm2.properties") in done.stderr
    assert "Traceback" not in done.stderr
