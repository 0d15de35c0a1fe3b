"""`mm2slo alerts generate` and `check`."""

import shlex
from pathlib import Path

import pytest
from promtool import needs_promtool
from typer.testing import CliRunner

from mm2slo_alerts.alert_files import generated
from mm2slo_cli.alerts import alerts_app
from mm2slo_core.user_errors import UserError

ROOT = Path(__file__).parents[3]
CONFIG = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows:
  - {flow: us->eu}
slo:
  objectives:
    - {sli: latency, tier: 10s, target: 0.93, max_severity: page}
"""


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(alerts_app, list(map(str, arguments)))
    if isinstance(result.exception, UserError):
        raise result.exception
    return result.exit_code, result.output


def test_committed_files_are_current() -> None:
    for name, text in generated().items():
        path = ROOT / "alerts" / "generated" / name
        assert path.read_text(encoding="utf-8") == text, "run: mm2slo alerts generate"


def test_alerts_check_after_generate_reports_current_files(tmp_path: Path) -> None:
    code, output = run("generate", "--out", tmp_path)
    assert code == 0
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == set(generated())
    assert all(str(tmp_path / name) in output for name in written)
    code, output = run("check", "--out", tmp_path)
    assert code == 0
    assert f"{len(written)} files in {tmp_path} are current" in output


def test_alerts_generate_uses_configured_exporter_job(tmp_path: Path) -> None:
    (tmp_path / "mm2slo.yaml").write_text(
        f"{CONFIG}alerting: {{exporter_job: mirroring/mm2slo-exporter}}\n"
    )
    run("generate", "--config", tmp_path / "mm2slo.yaml", "--out", tmp_path / "out")
    alerts = (tmp_path / "out" / "prometheus" / "mm2slo-alerts.rules.yml").read_text()
    assert alerts.count('up{job="mirroring/mm2slo-exporter"}') >= 3
    assert 'up{job="mm2slo"}' not in alerts


def test_alerts_check_names_stale_and_missing_files(tmp_path: Path) -> None:
    run("generate", "--out", tmp_path)
    rules = tmp_path / "prometheus" / "mm2slo-recording.rules.yml"
    rules.write_text(rules.read_text().replace("0.999", "0.99"))
    (tmp_path / "prometheus" / "mm2slo-alerts.rules.yml").unlink()
    code, output = run("check", "--out", tmp_path)
    assert code == 1
    assert f"{rules} is outdated; run: mm2slo alerts generate --out {tmp_path}" in output
    assert "mm2slo-alerts.rules.yml is missing" in output
    assert "prometheusrule" not in output


def test_alerts_check_prints_command_that_updates_files(tmp_path: Path) -> None:
    config = tmp_path / "my mm2slo.yaml"
    config.write_text(CONFIG)
    options = ("--config", config, "--out", tmp_path / "out", "--scale", "0.5")
    code, output = run("check", *options)
    assert code == 1
    missing = f"{tmp_path / 'out'} is missing; give the folder of the files with --out, or run: "
    [command] = {line.partition(missing)[2] for line in output.splitlines() if missing in line}
    program, group, name, *rest = shlex.split(command)
    assert (program, group) == ("mm2slo", "alerts")
    assert run(name, *rest)[0] == 0
    assert run("check", *options)[0] == 0


def test_alerts_commands_without_channel_name_default_webhook(tmp_path: Path) -> None:
    note = "note: alerting has no channel: Alertmanager posts to the Slack webhook in"
    config = tmp_path / "mm2slo.yaml"
    config.write_text(CONFIG)
    for command in ("generate", "check"):
        assert note in run(command, "--out", tmp_path / "default")[1]
        assert note in run(command, "--config", config, "--out", tmp_path / "own")[1]
    config.write_text(f"{CONFIG}alerting: {{slack: [{{name: a, webhook_url_file: /run/a}}]}}\n")
    assert "has no channel" not in run("generate", "--config", config, "--out", tmp_path)[1]


def test_alerts_without_channel_for_operator_name_secret_and_key(tmp_path: Path) -> None:
    config = tmp_path / "mm2slo.yaml"
    config.write_text(f"{CONFIG}alerting: {{namespace: a}}\n")
    options = ("generate", "--config", config, "--out", tmp_path, "--format")
    output = run(*options, "alertmanagerconfig")[1]
    assert "Slack webhook in the key default of the Secret mm2slo-slack" in output
    assert "/etc/mm2slo" not in output
    assert "has no channel" not in run(*options, "prometheusrule")[1]


def test_alerts_check_without_promtool_reports_skipped_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("generate", "--out", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, output = run("check", "--out", tmp_path)
    assert code == 0
    assert "promtool is not installed" in output
    assert "apt-get install prometheus-alertmanager" in output


@needs_promtool
def test_alerts_generate_with_config_writes_loadable_rules(tmp_path: Path) -> None:
    config = tmp_path / "mm2slo.yaml"
    config.write_text(CONFIG)
    out = tmp_path / "out"
    code, _ = run("generate", "--config", config, "--out", out)
    assert code == 0
    rules = (out / "prometheus" / "mm2slo-recording.rules.yml").read_text()
    assert "+ 0.93\n" in rules
    assert run("check", "--config", config, "--out", out)[0] == 0
    assert run("check", "--out", out)[0] == 1


def test_alerts_generate_with_zero_scale_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"scale is 0\.0: expected above 0 and at most 1"):
        run("generate", "--out", tmp_path, "--scale", "0")


def test_alerts_generate_to_unwritable_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*; choose another folder"):
        run("generate", "--out", tmp_path / "file" / "below")
