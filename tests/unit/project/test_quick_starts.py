"""The commands of the quick starts: executed here, or listed in docs/quick-starts.md."""

import hashlib
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from helm_chart import HELM, needs_helm

from mm2slo_cli.main import main

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "quick-starts.md"
ROWS = re.findall(
    r"^\| \[([^]]+)\]\(([^)]+)\) \|(.*?)\|(.*?)\|(.*)\|$", PAGE.read_text(), re.MULTILINE
)
NOTHING = "exit 0"


def blocks(name: str, heading: str) -> list[str]:
    """The shell commands below *heading*, or those before the first one."""
    text = (ROOT / name).read_text(encoding="utf-8")
    part = next(
        each
        for each in re.split(r"^## ", text, flags=re.MULTILINE)[bool(heading) :]
        if not heading or each.partition("\n")[0].lower().replace(" ", "-") == heading
    )
    found = re.findall(r"^( *)```sh\n(.*?)^ *```$", part, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"(?m)^{indent}", "", block) for indent, block in found]


def commands(block: str) -> list[str]:
    """Its lines, without comments, assignments and documents that follow."""
    text = re.sub(r"<<'END'\n.*?^END$", "", block, flags=re.MULTILINE | re.DOTALL)
    lines = text.replace("\\\n", " ").splitlines()
    known = [each for each in lines if not re.match(r"#|alias |$", each)]
    return [re.sub(r"^\(|^[A-Z_]+=\S+ ", "", each) for each in known]


def programs(block: str) -> set[str]:
    """The first program of each command."""
    return {each.split("=$(")[-1].split()[0] for each in commands(block)}


@pytest.mark.parametrize(("title", "link", "executed", "by", "left_out"), ROWS)
def test_each_command_is_listed_once_and_named_tests_exist(
    title: str, link: str, executed: str, by: str, left_out: str
) -> None:
    name, _, heading = link.partition("#")
    found = set().union(*map(programs, blocks(str(Path("docs") / name), heading)))
    run, not_run = (re.findall(r"`([^`]+)`", cell) for cell in (executed, left_out))
    assert found == {*run, *(each for each in not_run if not each.startswith("tests/"))}, title
    assert set(run).isdisjoint(not_run)
    tests = re.findall(r"`(tests/[^`]+)`", by + left_out)
    assert tests
    assert [each for each in tests if not (ROOT / each).is_file()] == []


def execute(block: str, folder: Path, root: Path, **programs: str) -> str:
    """Run *block* in *folder*; paths of the machine are below *root*, *programs* are replaced."""
    stubs = root / "stubs"
    stubs.mkdir(parents=True, exist_ok=True)
    for name, script in programs.items():
        stub = stubs / name.replace("_", "-")
        stub.write_text(f'#!/bin/sh\necho "$(basename "$0") $*" >> {root}/calls\n{script}\n')
        stub.chmod(0o755)
    local = re.sub(r"(?<=[ =>])/(etc|srv)\b", rf"{root}/\1", block).replace("-g mm2slo ", "")
    assert not re.search(r"/(etc|srv|opt|var|usr)\b", local.replace(f"{root}/", ""))
    done = subprocess.run(
        ["bash", "-euc", local], cwd=folder, capture_output=True, text=True, check=False,
        env={"PATH": f"{stubs}:/usr/bin:/bin", "SLACK_WEBHOOK_URL": "S", "SPLUNK_HEC_TOKEN": "H"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_token(tokens: Path, token: str) -> None:
    assert tokens.read_text() == f"{hashlib.sha256(token.encode()).hexdigest()} read prometheus\n"


@pytest.mark.parametrize("line", [c for b in blocks("README.md", "monitor-your-clusters")
                                  for c in commands(b) if c.startswith("mm2slo")])  # fmt: skip
def test_options_of_readme_are_accepted(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [*shlex.split(line, comments=True), "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (0, "")


def test_folders_and_secret_files_of_compose_are_written(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "deploy/compose/config", tmp_path / "deploy/compose/config")
    (tmp_path / "mm2.properties").write_text("clusters = us, eu\n")
    run = {"sudo": 'exec "$@"', "chown": NOTHING, "docker": NOTHING}
    for block in (
        *blocks("docs/compose.md", "your-clusters"),
        *blocks("docs/compose.md", "secret-files"),
    ):
        execute(block, tmp_path, tmp_path, **run)
    assert (tmp_path / "srv/mm2slo/config/mm2.properties").read_text() == "clusters = us, eu\n"
    assert str(tmp_path) in (tmp_path / "deploy/compose/.env").read_text()
    secrets = tmp_path / "srv/mm2slo/secrets"
    check_token(secrets / "report-tokens", (secrets / "report-token").read_text())
    assert {each.name: oct(each.stat().st_mode)[-3:] for each in secrets.iterdir()} == {
        "slack-webhook-url": "440", "grafana-password": "440", "report-token": "440",
        "report-tokens": "440", "postgres-password": "440", "pgpass": "400",
        "splunk-hec-token": "400",
    }  # fmt: skip


@needs_helm
def test_helm_accepts_options_of_the_quick_start(tmp_path: Path) -> None:
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "mirror.yaml").symlink_to(ROOT / "deploy/kubernetes/examples/mirror.yaml")
    _, block = blocks("docs/kubernetes.md", "quick-start")
    helm = f'shift; exec {HELM} template --kube-version 1.31.0 "$@"'
    rendered = execute(block, tmp_path, tmp_path, kubectl=NOTHING, helm=helm)
    report = next(
        each for each in yaml.safe_load_all(rendered) if each and each["kind"] == "Deployment"
    )
    assert report["metadata"]["name"] == "mm2slo-report"  # which kubectl names
    volumes = report["spec"]["template"]["spec"]["volumes"]
    assert "mm2slo-report" in [each.get("secret", {}).get("secretName") for each in volumes]
    calls = (tmp_path / "calls").read_text()
    token = re.search(r"--from-literal=token=(\w+)", calls)
    assert token is not None
    check_token(tmp_path / "tokens", token[1])


def test_backup_of_the_store_on_kubernetes_is_restored_while_the_store_is_open(
    tmp_path: Path,
) -> None:
    backup, restore = (
        re.findall(r'python -c "(.*?)"', "".join(blocks("docs/kubernetes.md", heading)))
        for heading in ("state", "upgrade")
    )
    service = sqlite3.connect(tmp_path / "mm2slo.db")
    service.execute("PRAGMA journal_mode = WAL")
    service.execute("CREATE TABLE recorded (x)")
    for (code,) in (backup, restore):
        local = code.replace("/var/lib/mm2slo", str(tmp_path))
        subprocess.run([sys.executable, "-c", local], check=True)
        if [code] == backup:
            service.execute("CREATE TABLE of_the_new_version (x)")
    assert service.execute("SELECT name FROM sqlite_master").fetchall() == [("recorded",)]
    service.close()


def test_units_configuration_and_secrets_of_hosts_are_installed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "deploy/systemd", tmp_path / "systemd")
    for folder in ("etc/kafka", "etc/mm2slo/secrets"):  # of MirrorMaker 2; of systemd-tmpfiles
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/kafka/mm2.properties").write_text("clusters = us, eu\n")
    for block in blocks("docs/hosts.md", "install")[2:5]:
        execute(block, tmp_path, tmp_path, systemctl=NOTHING, systemd_sysusers=NOTHING,
                systemd_tmpfiles=NOTHING)  # fmt: skip
    units = tmp_path / "etc/systemd/system"
    sources = [
        *(ROOT / "deploy/systemd").glob("mm2slo-*.service"),
        *(ROOT / "deploy/systemd").glob("mm2slo-*.timer"),
    ]
    assert {each.name for each in sources} == {
        each.name for each in units.iterdir() if each.is_file()
    }
    assert {each.name for each in (units / "mm2slo-.service.d").iterdir()} == {
        "10-sandbox.conf", "20-secrets.conf",
    }  # fmt: skip
    assert (tmp_path / "etc/mm2slo/mm2.properties").read_text() == "clusters = us, eu\n"
    assert (tmp_path / "etc/mm2slo/secrets/report-tokens").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "etc/mm2slo/slack-webhook-url").stat().st_mode & 0o777 == 0o440
    for name in ("mm2slo-audit", "mm2slo-audit-"):
        assert (units / f"{name}.service.d" / "20-java.conf").is_file()
