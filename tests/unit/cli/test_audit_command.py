"""`mm2slo audit`: invalid options and other errors before an audit starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mm2slo_audit
from mm2slo_cli.main import main
from mm2slo_store.store import Store

PROGRAM = [sys.executable, "-m", "mm2slo_cli"]
CONFIG = """
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  eu: {bootstrap_servers: "127.0.0.1:2"}
flows:
  - flow: us->eu
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mm2slo.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def audit(
    folder: Path, *options: str, program: list[str] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*(program or [*PROGRAM, "audit"]), "--config", "mm2slo.yaml", *options],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--flow", "us->apac"], "'us->apac' is not a configured flow: expected one of us->eu"),
        (["--since", "soon"], "--since 'soon' is not a duration: use for example 1h"),
        (["--from", "2099-01-01"], "the window starts in the future, at 2099-01-01T00:00:00Z"),
        (["--sample", "0%"], "--sample: sample rate is 0%"),
        (["--report", "report.pdf"], "--report 'report.pdf' has an unknown suffix"),
        (["--follow", "10m", "--from", "2026-01-01"], "leave out --from and --to"),
        (["--follow", "never"], "--follow 'never' is not a positive duration: use for example 10m"),
        (["--max-pending", "0"], "--max-pending '0' is not a positive duration"),
        (["--spark-conf", "spark.master"], "'spark.master' is not KEY=VALUE"),
    ],
)
def test_audit_invalid_option_prints_one_line_and_exits_2(
    folder: Path,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["mm2slo", "audit", "--config", "mm2slo.yaml", *options])
    assert main() == 2
    captured = capsys.readouterr()
    (line,) = [line for line in captured.err.splitlines() if not line.startswith("{")]
    assert message in line
    assert captured.out == ""
    if "--from" not in options or "--follow" in options:
        assert sorted(each.name for each in folder.iterdir()) == ["mm2slo.yaml"]


@pytest.mark.long
def test_audit_unreachable_cluster_exits_2_and_stores_nothing(folder: Path) -> None:
    found = audit(folder, "--since", "10m")
    assert found.returncode == 2
    *logged, message = found.stderr.splitlines()
    assert "cluster " in message
    assert "(unreachable)" in message or "(timeout)" in message
    assert "Traceback" not in found.stderr
    assert [json.loads(line)["stage"] for line in logged if '"stage"' in line] == ["scoping"]
    with Store.open(folder / "mm2slo.db") as store:
        assert store.runs() == ()


def test_audit_corrupt_store_exits_2_and_keeps_the_file(folder: Path) -> None:
    broken = folder / "mm2slo.db"
    broken.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    before = broken.read_bytes()
    found = audit(folder, "--since", "10m")
    assert found.returncode == 2
    assert "mm2slo.db" in found.stderr
    assert "Traceback" not in found.stderr
    assert broken.read_bytes() == before


def test_audit_main_file_runs_the_same_command(folder: Path) -> None:
    file = Path(mm2slo_audit.__file__).with_name("__main__.py")
    found = audit(folder, "--flow", "us->apac", program=[sys.executable, str(file)])
    assert found.returncode == 2
    assert "'us->apac' is not a configured flow" in found.stderr


def test_cli_import_loads_neither_spark_nor_store() -> None:
    code = (
        "import sys, mm2slo_cli.main;"
        "print([m for m in sys.modules if m.split('.')[0] in"
        " {'pyspark', 'sqlalchemy', 'mm2slo_audit', 'mm2slo_store'}])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"
