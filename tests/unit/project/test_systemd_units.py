"""The units of deploy/systemd: systemd's own checks, and what they call and set."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from mm2slo_alerts.alertmanager_config import DEFAULT_WEBHOOK_FILE
from mm2slo_cli import main as root

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "systemd"
DOC = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
UNITS = sorted([*FOLDER.glob("*.service"), *FOLDER.glob("*.timer")])
SERVICES = [each for each in UNITS if each.suffix == ".service"]
OWN = [each for each in SERVICES if each.name.startswith("mm2slo-")]
MAX_EXPOSURE = 2.0
"""Of systemd-analyze security, 0 to 10; systemd itself calls less than 2 safe enough (OK)."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def by_name(path: Path) -> str:
    return path.name


def settings(path: Path) -> dict[str, str]:
    """The keys of a unit; a repeated key has its last value."""
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path, encoding="utf-8")
    return {key: value for section in parser.sections() for key, value in parser.items(section)}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units with programs that exist, and with the drop-in of secrets."""
    folder = tmp_path_factory.mktemp("systemd")
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    shutil.copy(FOLDER / "20-secrets.conf", folder / "mm2slo-.service.d")
    for unit in folder.glob("*.service"):
        text = unit.read_text(encoding="utf-8")
        unit.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text), "utf-8")
    return folder


def analyze(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *arguments],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@needs_systemd
def test_systemd_accepts_units(installed: Path) -> None:
    # Unknown keys and values are only warnings, so nothing may be printed.
    done = analyze(installed, "verify", *(str(installed / each.name) for each in UNITS))
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("unit", SERVICES, ids=by_name)
def test_exposure_stays_below_threshold_and_is_stated(unit: Path, installed: Path) -> None:
    # The threshold is ten times the score.
    limit = f"--threshold={MAX_EXPOSURE * 10:.0f}"
    done = analyze(installed, "security", "--offline=true", limit, str(installed / unit.name))
    assert done.returncode == 0, done.stdout
    score = re.search(r"Overall exposure level for .*: ([\d.]+)", done.stdout)
    assert score is not None
    # Other versions of systemd weigh differently; the page names the version of its figures.
    stated = re.search(rf"\| `{re.escape(unit.name)}` \| ([\d.]+) \|", DOC)
    assert stated is not None
    assert float(stated[1]) == pytest.approx(float(score[1]), abs=0.3)


@pytest.mark.parametrize("unit", OWN, ids=by_name)
def test_command_line_is_accepted(
    unit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *arguments = settings(unit)["ExecStart"].split()
    assert program == "/opt/mm2slo/current/bin/mm2slo"
    # With --help, all other options are parsed, and nothing runs.
    monkeypatch.setattr(sys, "argv", ["mm2slo", *arguments, "--help"])
    with pytest.raises(SystemExit) as ended:
        root.main()
    assert (ended.value.code, capsys.readouterr().err) == (0, "")


def test_timers_start_services_that_end() -> None:
    timers = [each for each in UNITS if each.suffix == ".timer"]
    assert [each.stem for each in timers] == ["mm2slo-audit", "mm2slo-digest"]
    for timer in timers:
        service = settings(timer.with_suffix(".service"))
        assert service["Type"] == "oneshot"
        assert "TimeoutStartSec" in service  # oneshot has none by default
        assert "WantedBy" not in service  # the timer starts it


def test_services_wait_for_readiness_and_start_at_boot() -> None:
    for name in ("exporter", "report", "logship"):
        found = settings(FOLDER / f"mm2slo-{name}.service")
        assert (found["Type"], found["WantedBy"]) == ("notify", "multi-user.target")
        assert "notify_ready()" in (
            ROOT / "cli" / "mm2slo_cli" / f"{'report_serve' if name == 'report' else name}.py"
        ).read_text(encoding="utf-8")


def test_variables_are_read_by_the_command_line() -> None:
    names = re.findall(r"(?m)^#?(MM2SLO_\w+)=", (FOLDER / "mm2slo.env").read_text("utf-8"))
    assert len(names) == 3
    code = "".join(
        (ROOT / "cli" / "mm2slo_cli" / f"{name}.py").read_text(encoding="utf-8")
        for name in ("config_options", "service_process", "audit")
    )
    assert [name for name in names if f'"{name}"' not in code] == []


@pytest.mark.parametrize("has_logship", [False, True])
def test_configuration_is_valid_and_its_secrets_are_credentials(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    has_logship: bool,
) -> None:
    text = (FOLDER / "mm2slo.yaml").read_text(encoding="utf-8")
    secrets = set(re.findall(r"(?m)^[^#\n]*/run/secrets/([\w-]+)", text))
    drop_in = (FOLDER / "20-secrets.conf").read_text(encoding="utf-8")
    assert set(re.findall(r"LoadCredential=([\w-]+):", drop_in)) == secrets
    if has_logship:
        text = re.sub(r"(?m)^#(logship:|  )", r"\1", text)
    (tmp_path / "mm2slo.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "mm2.properties").write_text(
        "clusters = us, eu\nus.bootstrap.servers = us:9092\neu.bootstrap.servers = eu:9092\n"
        "us->eu.enabled = true\n"
    )
    monkeypatch.setattr(sys, "argv", ["mm2slo", "check", "--config", str(tmp_path / "mm2slo.yaml")])
    with suppress(SystemExit):
        root.main()
    assert "valid; 1 flow, 2 clusters" in capsys.readouterr().out
    assert ("\nlogship:" in text) == has_logship


def test_webhook_is_at_alertmanagers_path_and_not_a_credential_of_a_unit() -> None:
    config = yaml.safe_load((FOLDER / "mm2slo.yaml").read_text(encoding="utf-8"))
    (channel,) = config["alerting"]["slack"]
    assert channel["webhook_url_file"] == DEFAULT_WEBHOOK_FILE
    for page in (DOC, (ROOT / "deploy/prometheus/README.md").read_text(encoding="utf-8")):
        assert re.search(rf"install .* {DEFAULT_WEBHOOK_FILE}\b", page)
    # Alertmanager's user is not in the group mm2slo: it must reach the file.
    assert "d /etc/mm2slo 0751 " in (FOLDER / "tmpfiles.d/mm2slo.conf").read_text(encoding="utf-8")


@needs_systemd
@pytest.mark.parametrize(("unit", "allows"), [("mm2slo-audit-x", True), ("mm2slo-x", False)])
def test_command_named_as_an_audit_may_run_a_jvm(
    unit: str, installed: Path, *, allows: bool
) -> None:
    folder = installed / "mm2slo-audit-.service.d"  # as docs/hosts.md installs it
    shutil.copytree(FOLDER / "mm2slo-audit.service.d", folder, dirs_exist_ok=True)
    path = installed / f"{unit}.service"
    path.write_text("[Service]\nExecStart=/bin/true\n", encoding="utf-8")
    done = analyze(installed, "security", "--offline=true", str(path))
    assert ("✗ MemoryDenyWriteExecute" in done.stdout) is allows, done.stdout


def test_page_names_every_file() -> None:
    files = [each for each in FOLDER.rglob("*") if each.is_file()]
    assert [each.name for each in files if each.name not in DOC] == []
