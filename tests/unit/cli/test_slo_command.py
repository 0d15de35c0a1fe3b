"""`mm2slo slo`: what it prints, and how it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from mm2slo_cli import main as cli
from mm2slo_core.config import load_config
from mm2slo_core.objectives import openslo

if TYPE_CHECKING:
    from pathlib import Path

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


def test_what_is_exported_is_imported(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    config: str,
    tmp_path: Path,
) -> None:
    assert run(monkeypatch, "export", "--config", config) == 0
    file = tmp_path / "openslo.yaml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert len(openslo.read(file.read_text(encoding="utf-8"))) == 12
    assert run(monkeypatch, "import", str(file)) == 0
    section = capsys.readouterr().out
    without = "".join(CONFIG.splitlines(keepends=True)[:2])
    assert load_config(without + section).objectives == load_config(CONFIG).objectives


def test_the_formats_and_the_flows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    one = ("--config", config, "--flow", "us->eu")
    assert run(monkeypatch, "export", *one, "--format", "native") == 0
    entries = yaml.safe_load(capsys.readouterr().out)["slo"]["objectives"]
    assert [each["flows"] for each in entries] == [["us->eu"]] * 6
    assert entries[0]["target"] == "99.5%"
    assert run(monkeypatch, "export", *one, "--format", "sloth") == 0
    assert yaml.safe_load(capsys.readouterr().out)["service"] == "us-to-eu"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"kind: SLO\n", "document 1: apiVersion: is missing; expected openslo/v1"),
        (b"\xff", "byte 0 is not UTF-8; expected YAML text"),
        (None, "No such file or directory; expected the path of an OpenSLO file"),
    ],
)
def test_what_cannot_be_imported_ends_with_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    text: bytes | None,
    expected: str,
) -> None:
    file = tmp_path / "openslo.yaml"
    if text is not None:
        file.write_bytes(text)
    assert run(monkeypatch, "import", str(file)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in captured.err
    assert "Traceback" not in captured.err


def test_an_unknown_flow_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    assert run(monkeypatch, "export", "--config", config, "--flow", "us->ue") == 2
    assert "did you mean 'us->eu'?" in capsys.readouterr().err
