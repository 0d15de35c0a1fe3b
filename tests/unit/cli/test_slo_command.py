"""`mm2slo slo`: the objectives that it prints, and its errors."""

from pathlib import Path

import pytest
import yaml

from mm2slo_cli import main as cli
from mm2slo_core.config.config_loader import load_config

CONFIG = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}, {flow: eu->us}]
slo: {objectives: [{flows: us->eu, sli: availability, target: 99.5%}]}
"""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["mm2slo", "slo", *arguments])
    try:
        return cli.main()
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "mm2slo.yaml"
    file.write_text(CONFIG, encoding="utf-8")
    return str(file)


def test_slo_export_default_format_is_openslo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    assert run(monkeypatch, "export", "--config", config) == 0
    default = capsys.readouterr().out
    slos = [each for each in yaml.safe_load_all(default) if each["kind"] == "SLO"]
    assert len(slos) == 12
    assert {each["apiVersion"] for each in slos} == {"openslo/v1"}
    assert run(monkeypatch, "export", "--config", config, "--format", "openslo") == 0
    assert capsys.readouterr().out == default


def test_slo_export_native_output_loads_as_the_same_objectives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    assert run(monkeypatch, "export", "--config", config, "--format", "native") == 0
    section = capsys.readouterr().out
    assert len(yaml.safe_load(section)["slo"]["objectives"]) == 12
    without = "".join(CONFIG.splitlines(keepends=True)[:2])
    assert load_config(without + section).objectives == load_config(CONFIG).objectives


def test_slo_export_with_flow_prints_the_objectives_of_that_flow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    one = ("--config", config, "--flow", "us->eu")
    assert run(monkeypatch, "export", *one) == 0
    exported = list(yaml.safe_load_all(capsys.readouterr().out))
    services = [each["metadata"]["name"] for each in exported if each["kind"] == "Service"]
    assert services == ["us-to-eu"]
    assert run(monkeypatch, "export", *one, "--format", "native") == 0
    entries = yaml.safe_load(capsys.readouterr().out)["slo"]["objectives"]
    assert [each["flows"] for each in entries] == [["us->eu"]] * 6
    assert entries[0]["target"] == "99.5%"


def test_slo_export_with_unknown_flow_suggests_a_known_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    assert run(monkeypatch, "export", "--config", config, "--flow", "us->ue") == 2
    assert "did you mean 'us->eu'?" in capsys.readouterr().err
