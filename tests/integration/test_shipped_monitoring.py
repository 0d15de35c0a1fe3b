"""Prometheus and Alertmanager accept the shipped configuration, and retention is sufficient."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from mm2slo_alerts.alert_files import ALERTMANAGER, SLACK_TEMPLATE
from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS
from mm2slo_core.config.service_config import ExporterConfig
from mm2slo_core.objectives.objective import DAY, DEFAULT_WINDOW
from mm2slo_lab.lab_monitoring import find_program, run_server
from mm2slo_lab.managed_process import request_json

pytestmark = pytest.mark.xdist_group("monitoring")

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "deploy" / "prometheus"
GENERATED = ROOT / "alerts" / "generated"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The installation described in deploy/prometheus/README.md."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "templates").mkdir()
    shutil.copy(SHIPPED / "prometheus.yml", tmp_path)
    for rules in (GENERATED / "prometheus").glob("*.rules.yml"):
        shutil.copy(rules, tmp_path / "rules")
    shutil.copy(GENERATED / ALERTMANAGER, tmp_path)
    shutil.copy(GENERATED / SLACK_TEMPLATE, tmp_path / "templates")
    return tmp_path


def arguments(name: str) -> list[str]:
    """Arguments in a file of /etc/default."""
    text = (SHIPPED / name).read_text(encoding="utf-8")
    found = re.search(r'^ARGS="(.*)"$', text, re.MULTILINE)
    assert found is not None
    return shlex.split(found[1])


def run_check(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_and_amtool_accept_installed_files(installed: Path) -> None:
    output = run_check(
        [find_program("promtool"), "check", "config", str(installed / "prometheus.yml")]
    )
    assert "SUCCESS: 2 rule files found" in output
    run_check([find_program("amtool"), "check-config", str(installed / "alertmanager.yml")])


def test_metrics_of_rules_are_scraped() -> None:
    document = yaml.safe_load((SHIPPED / "prometheus.yml").read_text(encoding="utf-8"))
    targets = {
        job["job_name"]: job["static_configs"][0]["targets"] for job in document["scrape_configs"]
    }
    assert targets[DEFAULT_THRESHOLDS.exporter_job] == [str(ExporterConfig().listen)]
    assert set(targets) == {"mm2slo", "prometheus", "alertmanager", "mm2slo-logship"}
    # Shipping logs is optional: an absent target would be shown as down.
    assert targets["mm2slo-logship"] == []
    [manager] = document["alerting"]["alertmanagers"]
    assert manager["static_configs"][0]["targets"] == targets["alertmanager"]
    assert document["global"]["evaluation_interval"] == "30s"


def test_prometheus_retention_covers_longest_window_and_a_week(installed: Path) -> None:
    binary = find_program("prometheus")

    def command(listen: str) -> list[str]:
        return [
            binary,
            f"--config.file={installed / 'prometheus.yml'}",
            f"--storage.tsdb.path={installed / 'data'}",
            f"--web.listen-address={listen}",
            *arguments("prometheus.default"),
        ]

    with run_server("prometheus", installed, command) as (address, _):
        duration = request_json(f"{address}/api/v1/status/runtimeinfo")["data"]["storageRetention"]
        groups = request_json(f"{address}/api/v1/rules")["data"]["groups"]
    days = re.fullmatch(r"(?:(\d+)w)?(?:(\d+)d)?", duration)
    assert days is not None, duration
    retention = DAY * (7 * int(days[1] or 0) + int(days[2] or 0))
    assert retention >= max(35 * DAY, DEFAULT_WINDOW + 7 * DAY)
    assert {"mm2slo-burn", "mm2slo-causes-flow"} <= {group["name"] for group in groups}


def test_alertmanager_starts_with_installed_files(installed: Path) -> None:
    binary = find_program("alertmanager")

    def command(listen: str) -> list[str]:
        return [
            binary,
            f"--config.file={installed / 'alertmanager.yml'}",
            f"--storage.path={installed / 'data'}",
            f"--web.listen-address={listen}",
            "--cluster.listen-address=",
            *arguments("alertmanager.default"),
        ]

    with run_server("alertmanager", installed, command) as (address, _):
        status = request_json(f"{address}/api/v2/status")
    assert "receiver: channel-default" in status["config"]["original"]
