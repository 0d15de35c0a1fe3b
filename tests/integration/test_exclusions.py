"""`mm2slo exclude` with Alertmanager and Prometheus."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from mm2slo_cli.exclusion_effects import HttpStatusError, MonitoringApi
from mm2slo_cli.main import main
from mm2slo_lab.lab_monitoring import find_program, run_server
from mm2slo_lab.managed_process import free_ports, wait_for

pytestmark = pytest.mark.xdist_group("monitoring")

CONFIG = """
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  eu: {bootstrap_servers: "127.0.0.1:2"}
flows:
  - flow: us->eu
  - flow: eu->us
alerting:
  maintenance: {rules_file: rules/mm2slo-maintenance.rules.yml}
"""
RULES = "rules/mm2slo-maintenance.rules.yml"


@contextmanager
def monitoring_api(name: str, folder: Path, *command: str) -> Iterator[MonitoringApi]:
    """Run Prometheus or Alertmanager until the block ends."""
    with run_server(name, folder, lambda listen: [*command, f"--web.listen-address={listen}"]) as (
        address,
        _,
    ):
        yield MonitoringApi.of(name, "its address", address)


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitoringApi]:
    folder = tmp_path_factory.mktemp("alertmanager")
    (folder / "alertmanager.yml").write_text("{route: {receiver: none}, receivers: [{name: none}]}")
    command = [
        find_program("alertmanager"),
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'data'}",
        "--cluster.listen-address=",
    ]
    with monitoring_api("Alertmanager", folder, *command) as server:
        yield server


class Command:
    """The command line in its own folder."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self.folder, self._patch, self._capture = folder, patch, capture
        self.out = self.err = ""

    def __call__(self, command: str, *arguments: str) -> int:
        line = ["mm2slo", "exclude", command, "--config", "mm2slo.yaml", *arguments]
        self._patch.setattr(sys, "argv", line)
        try:
            code = main()
        except SystemExit as ended:
            code = 0 if ended.code is None else int(ended.code)
        captured = self._capture.readouterr()
        self.out, self.err = captured.out, captured.err
        return code

    def listed(self) -> list[dict[str, Any]]:
        assert self("list", "--all", "--json") == 0
        found: list[dict[str, Any]] = json.loads(self.out)
        return found


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    (tmp_path / "mm2slo.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "rules").mkdir()
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path, monkeypatch, capsys)


ADD = ["add", "--reason", 'upgrade of "eu" <b>&', "--by", "ana"]


def test_exclusion_creates_and_expires_silence(
    command: Command, alertmanager: MonitoringApi
) -> None:
    to = ["--alertmanager-url", alertmanager.base]
    at = datetime.now(UTC).replace(microsecond=0)
    start, end = at + timedelta(hours=1), at + timedelta(hours=3)
    times = ["--from", start.isoformat(), "--to", end.isoformat()]
    assert command(*ADD, "--flow", "us->eu", *times, "--silence", *to) == 0
    (kept,) = command.listed()
    silence = alertmanager.call("GET", f"/api/v2/silence/{kept['silence']}")
    assert silence["matchers"] == [
        {"name": "flow", "value": "us->eu", "isRegex": False, "isEqual": True}
    ]
    assert datetime.fromisoformat(silence["startsAt"]) == start
    assert datetime.fromisoformat(silence["endsAt"]) == end
    assert silence["createdBy"] == "ana"
    assert silence["comment"] == f'mm2slo exclusion {kept["id"]}: upgrade of "eu" <b>&'
    assert silence["status"]["state"] == "pending"

    assert command("remove", kept["id"], *to) == 0
    assert f"silence {kept['silence']} ended\n" in command.out
    assert alertmanager.call("GET", f"/api/v2/silence/{kept['silence']}")["status"]["state"] == (
        "expired"
    )


def test_silence_of_several_flows_matches_only_these(
    command: Command, alertmanager: MonitoringApi
) -> None:
    to = ["--alertmanager-url", alertmanager.base]
    assert command(*ADD, "--flow", "*", "--from", "now", "--for", "1h", "--silence", *to) == 0
    (kept,) = command.listed()
    now = datetime.now(UTC).isoformat()
    alerts = [
        {"labels": {"alertname": "MM2FlowStopped", "flow": flow}, "startsAt": now}
        for flow in ("us->eu", "eu->us", "us->eu2", "xus->eu")
    ]
    alertmanager.call("POST", "/api/v2/alerts", alerts)

    def silenced() -> dict[str, list[str]]:
        found = alertmanager.call("GET", "/api/v2/alerts")
        return {each["labels"]["flow"]: each["status"]["silencedBy"] for each in found}

    wait_for(lambda: len(silenced()) == 4, "the alerts")
    wait_for(lambda: bool(silenced()["us->eu"]), "the silence to take effect")
    own = [kept["silence"]]
    assert silenced() == {"us->eu": own, "eu->us": own, "us->eu2": [], "xus->eu": []}

    # The exclusion is removed even if its silence has already ended.
    alertmanager.call("DELETE", f"/api/v2/silence/{kept['silence']}")
    assert command("remove", kept["id"], *to) == 0
    assert f"silence {kept['silence']} had already ended\n" in command.out


def test_exclusion_without_alertmanager_omits_only_silence(
    command: Command, alertmanager: MonitoringApi
) -> None:
    (port,) = free_ports(1)
    unreachable = f"http://ana:s3cr3t@127.0.0.1:{port}"
    times = ["--from", "now", "--for", "1h"]
    options = ["--silence", "--alertmanager-url", unreachable]
    assert command(*ADD, "--flow", "us->eu", *times, *options) == 2
    first, second = command.err.splitlines()
    assert first == "the store is up to date, but these steps failed:"
    assert second.startswith(
        f"no silence was created: Alertmanager at http://127.0.0.1:{port} is unreachable: "
    )
    assert "s3cr3t" not in command.err
    (kept,) = command.listed()
    assert (kept["state"], kept["silence"]) == ("running", None)
    assert "us->eu" in (command.folder / RULES).read_text()
    # The printed command creates the silence.
    line = second.partition("later with: ")[2].replace(f"127.0.0.1:{port}", alertmanager.base[7:])
    printed_command = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)  # noqa: S602 - as a user would paste it
    assert printed_command.returncode == 0, printed_command.stderr
    made = alertmanager.call("GET", f"/api/v2/silence/{printed_command.stdout.strip()}")
    assert made["matchers"][0]["value"] == "us->eu"
    assert made["comment"] == f'mm2slo exclusion {kept["id"]}: upgrade of "eu" <b>&'


def test_prometheus_reloads_rule_file(command: Command) -> None:
    folder = command.folder
    (folder / "prometheus.yml").write_text("rule_files: [rules/*.rules.yml]\n")
    start = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    times = ["--from", "now", "--for", "1h"]
    with ExitStack() as stack:
        server = stack.enter_context(
            monitoring_api("Prometheus", folder, *start, "--web.enable-lifecycle")
        )
        reload = ["--reload-url", f"{server.base}/-/reload"]
        assert command(*ADD, "--flow", "us->eu", *times, *reload) == 0
        loaded = f"Prometheus at {server.base} has loaded it\n"
        assert command.out.endswith(f"1 rule in {RULES}\n{loaded}")

        (group,) = server.call("GET", "/api/v1/rules")["data"]["groups"]
        (rule,) = group["rules"]
        assert (rule["name"], group["interval"]) == ("flow:mm2_maintenance:active", 30)
        assert rule["labels"] == {"flow": "us->eu", "source": "us", "target": "eu"}

        # Prometheus reloads but does not load this file, and has another exclusion of the flow.
        other = ["--rules-file", "elsewhere.yml", "--store", "other.db", *reload]
        assert command(*ADD, "--flow", "us->eu", *times, *other) == 2
        assert command.err.splitlines()[1] == (
            f"Prometheus at {server.base} was reloaded but has not loaded the rule file: "
            "add it to rule_files in prometheus.yml and reload again"
        )
        (folder / "rules" / "broken.rules.yml").write_text("groups: nonsense\n")
        assert command("write", *reload) == 2
        assert "returned HTTP 500: failed to reload config" in command.err


def test_prometheus_without_lifecycle_api_is_reported(command: Command) -> None:
    (command.folder / "prometheus.yml").write_text("rule_files: [rules/*.rules.yml]\n")
    start = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    with monitoring_api("Prometheus", command.folder, *start) as server:
        assert command("write", "--reload-url", server.base) == 2
        assert command.err.splitlines() == [
            "the store is up to date, but these steps failed:",
            (
                f"Prometheus at {server.base} does not reload on request: start it with "
                "--web.enable-lifecycle, or send it SIGHUP"
            ),
        ]
        with pytest.raises(HttpStatusError, match="returned HTTP 404"):
            server.call("GET", "/nowhere")
    assert yaml.safe_load((command.folder / RULES).read_text()) == {"groups": []}
