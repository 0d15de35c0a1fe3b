"""The command line: exit codes, messages and lazy imports."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import trustme
from cli_process import run_main
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from mm2slo_cli.config_options import ConfigSource
from mm2slo_core.user_errors import UserError

PROGRAM = Path(sys.executable).parent / "mm2slo"
GOOD = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu:
    bootstrap_servers: "eu:9092"
    security:
      protocol: SASL_SSL
      sasl: {mechanism: PLAIN, username: app, password: "${env:MM2SLO_TEST_PASSWORD}"}
flows:
  - {flow: us->eu, topics: ["orders.[a-z]+", "payments", "users", "clicks"]}
  - {flow: eu->us, canary: {carrier: topic}}
"""


def mm2slo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean | {"COLUMNS": "80", "NO_COLOR": "1"} | environment,
    )


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "mm2slo.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return str(path)


def test_check_lists_flows_and_writes_in_80_columns(good: str) -> None:
    done = mm2slo("check", "--config", good, MM2SLO_TEST_PASSWORD="hunter2")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rstrip() for line in done.stdout.replace(good, "mm2slo.yaml").splitlines()]
    assert [line for line in lines if line] == [
        "mm2slo.yaml: valid; 2 flows, 2 clusters",
        " Flow     Engine         Policy    Topics                Groups   Canary",
        " " + "─" * 78,
        " us->eu   mirrormaker2   default   orders.[a-z]+,        .*       heartbeats",
        "                                   payments, users and",
        "                                   1 more",
        " eu->us   mirrormaker2   default   .*                    .*       mm2slo.canary",
        " Writes to   Topic or group               What                     Flows",
        " " + "─" * 72,
        " eu          group mm2slo.canary.*        membership, no offsets   eu->us",
        " eu          group mm2slo.leader.*        membership, no offsets   us->eu",
        " eu          mm2slo.arrivals.internal     arrival times            us->eu",
        " eu          mm2slo.canary                canaries                 eu->us",
        " eu          mm2slo.state.internal        losses and verdicts      us->eu",
        " eu          mm2slo.watermarks.internal   watermark timeline       us->eu",
        " us          group mm2slo.canary.*        membership, no offsets   us->eu",
        " us          group mm2slo.leader.*        membership, no offsets   eu->us",
        " us          heartbeats                   canaries                 us->eu",
        " us          mm2slo.arrivals.internal     arrival times            eu->us",
        " us          mm2slo.state.internal        losses and verdicts      eu->us",
        " us          mm2slo.watermarks.internal   watermark timeline       eu->us",
        "1,000 moving partitions write about 1.3 GB a day to mm2slo.watermarks.internal,",
        "which keeps at most 16 GB and thus 12 instead of 35 days: audits of earlier",
        "windows have no latency; and up to 4.06 GB a day to mm2slo.arrivals.internal,",
        "which keeps at most 4 GB and thus 24 hours.",
    ]
    assert max(map(len, lines)) <= 80


def test_check_prints_json_without_secrets(good: str) -> None:
    done = mm2slo("check", "--config", good, "--json", MM2SLO_TEST_PASSWORD="hunter2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "hunter2" not in done.stdout
    printed = json.loads(done.stdout)
    assert printed["flows"][1] == {
        "flow": "eu->us",
        "slug": "eu-to-us",
        "engine": "mirrormaker2",
        "policy": "default",
        "canary": "topic",
        "unavailable": [],
    }
    assert printed["writes"][3] == {
        "cluster": "eu",
        "kind": "topic",
        "name": "mm2slo.canary",
        "purpose": "canaries",
        "flows": ["eu->us"],
    }
    sasl = printed["config"]["clusters"]["eu"]["security"]["sasl"]
    assert sasl == {
        "mechanism": "PLAIN", "username": "app", "password": "***", "oauth": None,
        "aws_region": None, "aws_role_arn": None,
    }  # fmt: skip


def test_check_of_read_only_exporter_says_that_nothing_is_written(
    tmp_path: Path, good: str
) -> None:
    path = tmp_path / "read-only.yaml"
    path.write_text(Path(good).read_text("utf-8") + "exporter: {read_only: true}\n", "utf-8")
    done = mm2slo("check", "--config", str(path), MM2SLO_TEST_PASSWORD="hunter2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The exporter writes nothing to the clusters." in done.stdout
    assert "Writes to" not in done.stdout


def test_check_names_token_patterns_without_a_flow(tmp_path: Path, good: str) -> None:
    tokens, path = tmp_path / "tokens", tmp_path / "with-tokens.yaml"
    report = f"report: {{tokens_file: {tokens}}}\n"
    path.write_text(Path(good).read_text("utf-8") + report, "utf-8")
    tokens.write_text(f"{'0' * 64} read:us->*,us->ap ops\n{'1' * 64} read all\n", "utf-8")
    done = mm2slo("check", "--config", str(path), "--json", MM2SLO_TEST_PASSWORD="hunter2")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["notices"][-1] == (
        "report.tokens_file: us->ap of token 'ops' matches no configured flow, so it grants "
        "nothing; expected a pattern such as us->eu"
    )
    tokens.unlink()
    done = mm2slo("check", "--config", str(path), MM2SLO_TEST_PASSWORD="hunter2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "note: cannot read report.tokens_file" in done.stdout


MISTAKES = {
    "an unknown key": ("slice:", "slize:", "flows[0].slize (line 5): unknown key"),
    "a wrong type": ("15s", "[]", "flows[0].slice (line 5): a list is not a duration"),
    "an unknown alias": (
        "us->eu",
        "us->xx",
        "flows[0].flow (line 4): 'us->xx' refers to the unknown cluster 'xx'",
    ),
    "a flow to itself": (
        "us->eu",
        "us->us",
        "flows[0].flow (line 4): 'us->us' has the same source and target",
    ),
    "an unset variable": (
        "us:1",
        "${env:MM2SLO_TEST_GONE}",
        "clusters.us.bootstrap_servers (line 1): ${env:MM2SLO_TEST_GONE} is not set",
    ),
    "an unreadable secret": (
        "us:1",
        "${file:gone}",
        (
            "clusters.us.bootstrap_servers (line 1): ${file:gone} cannot be read: "
            "No such file or directory"
        ),
    ),
}


@pytest.mark.parametrize(("old", "new", "first"), MISTAKES.values(), ids=[*MISTAKES])
def test_check_invalid_config_exits_2_and_reports_on_stderr(
    tmp_path: Path, old: str, new: str, first: str
) -> None:
    text = """\
clusters: {us: {bootstrap_servers: "us:1"}, eu: {bootstrap_servers: "eu:1"}}

flows:
  - flow: us->eu
    slice: 15s
"""
    path = tmp_path / "mm2slo.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    done = mm2slo("check", "--config", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[:2] == [f"{path}: 1 problem", first]
    assert "Traceback" not in done.stderr


def test_check_missing_file_prints_one_line(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.yaml")
    done = mm2slo("check", "--config", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"cannot read '{path}': No such file or directory; expected the path of an mm2slo.yaml "
        "(start from docs/reference-config.yaml)\n"
    )


def test_check_binary_file_prints_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mm2slo.yaml"
    path.write_bytes(b"clusters: \xff")
    done = mm2slo("check", "--config", str(path))
    assert done.returncode == 2
    assert done.stderr == (
        f"cannot read '{path}': byte 10 is not UTF-8; expected a YAML text file\n"
    )


def test_check_resolves_secret_files_relative_to_config(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2\n", encoding="utf-8")
    path = tmp_path / "mm2slo.yaml"
    path.write_text(GOOD.replace("${env:MM2SLO_TEST_PASSWORD}", "${file:password}"), "utf-8")
    assert mm2slo("check", "--config", str(path)).returncode == 0


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stderr.split())


def test_check_loads_no_kafka_client(tmp_path: Path) -> None:
    path = tmp_path / "mm2slo.yaml"
    path.write_text(GOOD.replace("${env:MM2SLO_TEST_PASSWORD}", "x"), encoding="utf-8")
    code = f"sys.argv = ['mm2slo', 'check', '--config', {str(path)!r}]\n"
    code += "from mm2slo_cli.main import main\ntry: main()\nexcept SystemExit: pass"
    loaded = loaded_by(code)
    assert "mm2slo_core.config" in loaded
    assert not {"confluent_kafka", "pyspark", "mm2slo_kafka", "mm2slo_exporter"} & loaded


def test_root_help_loads_no_command() -> None:
    code = "sys.argv = ['mm2slo', '--help']\n"
    code += "from mm2slo_cli.main import main\ntry: main()\nexcept SystemExit: pass"
    loaded = loaded_by(code)
    assert {name for name in loaded if name.startswith("mm2slo_")} == {
        "mm2slo_cli",
        "mm2slo_cli.config_options",
        "mm2slo_cli.gc_pause",
        "mm2slo_cli.main",
        "mm2slo_core",
        "mm2slo_core.user_errors",
    }


def test_version_prints_package_version() -> None:
    assert mm2slo("--version").stdout == "mm2slo 0.1.0\n"


def test_exporter_without_config_exits_2() -> None:
    done = mm2slo("exporter")
    assert done.returncode == 2
    assert done.stderr == (
        "the configuration is missing; give --config mm2slo.yaml, or MirrorMaker 2's own files "
        "with --mm2, --strimzi or --connect-json, or set MM2SLO_CONFIG, MM2SLO_MM2 or another "
        "of their variables\n"
    )


def install_fake_module(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> None:
    module = ModuleType(f"mm2slo_cli.{name}")
    for key, value in content.items():
        setattr(module, key, value)
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_exporter_and_demo_pass_their_options(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    install_fake_module(monkeypatch, "settings_process", run=lambda *given: calls.append(given))
    install_fake_module(
        monkeypatch, "demo", run=lambda *given, **flags: calls.append((*given, flags))
    )
    several = ("--config", "c.yaml", "--flow", "us->eu", "--flow", "eu->us")
    assert run_main(monkeypatch, "exporter", *several) == 0
    assert run_main(monkeypatch, "exporter", "--config", "c.yaml") == 0
    assert run_main(monkeypatch, "demo", "--seconds", "2.5", "--once", "--json") == 0
    assert run_main(monkeypatch, "demo", "--no-audit") == 0
    assert run_main(monkeypatch, "demo", "--scenario", "stop-mirror") == 0
    plain = {"once": False, "as_json": False, "keep": False, "audited": True, "scenario": None}
    assert calls == [
        (ConfigSource(Path("c.yaml")), ["us->eu", "eu->us"]),
        (ConfigSource(Path("c.yaml")), []),
        (2.5, plain | {"once": True, "as_json": True}),
        (None, plain | {"audited": False}),
        (None, plain | {"scenario": "stop-mirror"}),
    ]


EXITS = {
    "a user error": (UserError("use this"), 2, "use this\n"),
    "Ctrl-C": (KeyboardInterrupt(), 130, ""),
    "a missing extra": (
        ModuleNotFoundError("no", name="pyspark.sql"),
        2,
        (
            "this command needs pyspark, which is not installed; run in a checkout of mm2slo, "
            "or with the path of its wheel in place of the dot: pip install '.[audit]'\n"
        ),
    ),
    "a missing dependency": (
        ModuleNotFoundError("no", name="confluent_kafka"),
        2,
        (
            "this command needs confluent_kafka, which is not installed; "
            "run in a checkout of mm2slo, or with the path of its wheel in place of the dot: "
            "pip install --force-reinstall .\n"
        ),
    ),
    "a missing module of mm2slo": (
        ModuleNotFoundError("no", name="mm2slo_cli.demo"),
        2,
        "this build of mm2slo has no mm2slo_cli.demo; install it again\n",
    ),
}


@pytest.mark.parametrize(("raised", "code", "message"), EXITS.values(), ids=[*EXITS])
def test_main_error_sets_exit_code_and_message(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    code: int,
    message: str,
) -> None:
    def run(*_: object, **__: object) -> None:
        raise raised

    install_fake_module(monkeypatch, "demo", run=run)
    assert run_main(monkeypatch, "demo") == code
    assert capsys.readouterr().err == message


LAB = """\
import sys
from types import ModuleType
import typer
from mm2slo_core.user_errors import UserError

lab_app = typer.Typer(pretty_exceptions_enable=False)

@lab_app.command()
def start(*, port: int = 1) -> None:
    if port == 2:
        raise UserError("no such port")
    if port == 3:
        raise typer.Exit(7)
    print("port", port)

@lab_app.command()
def stop() -> None:
    pass

module = ModuleType("mm2slo_cli.lab")
module.lab_app = lab_app
sys.modules["mm2slo_cli.lab"] = module
from mm2slo_cli.main import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["start", "--port", "5"], 0, "port 5"),
        (["start", "--port", "2"], 2, "no such port"),
        (["start", "--port", "3"], 7, ""),
        (["start", "--prot", "3"], 2, "No such option"),
        (["--help"], 0, "stop"),
        (["start", "--help"], 0, "--port"),
    ],
)
def test_lab_parses_its_own_arguments(arguments: list[str], code: int, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LAB, "lab", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert expected in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_unexpected_error_traceback_has_no_local_variables() -> None:
    code = LAB.replace('print("port", port)', 'secret = "hunter" + "2"; raise RuntimeError')
    done = subprocess.run(
        [sys.executable, "-c", code, "lab", "start"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "RuntimeError" in done.stderr
    assert "hunter2" not in done.stderr


def test_wrong_key_password_of_a_cluster_is_named_and_the_others_are_checked(
    tmp_path: Path,
) -> None:
    issued = trustme.CA().issue_cert("client")
    (tmp_path / "cert.pem").write_bytes(issued.cert_chain_pems[0].bytes())
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encrypted = BestAvailableEncryption(b"right")
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encrypted)
    )
    file = tmp_path / "mm2slo.yaml"
    tls = (
        f"{{certificate_file: {tmp_path}/cert.pem, key_file: {tmp_path}/key.pem, "
        "key_password: hunter2}"
    )
    file.write_text(
        "clusters:\n"
        "  aa:\n    bootstrap_servers: 127.0.0.1:1\n"
        f"    security: {{protocol: SSL, tls: {tls}}}\n"
        "  us: {bootstrap_servers: '127.0.0.1:1'}\n"
        "flows:\n  - {flow: us->aa}\n"
    )
    found = mm2slo("check", "--connect", "--json", "--config", str(file))
    assert (found.returncode, found.stderr) == (1, "")
    results = {each["where"]: each for each in json.loads(found.stdout)["results"]}
    assert results["aa"]["check"] == "invalid_config"
    assert "security.tls.key_file with its key_password cannot be used" in results["aa"]["finding"]
    assert results["us"]["finding"] == "127.0.0.1:1: connection failed: Connection refused"
    assert "hunter2" not in found.stdout
    started = mm2slo("exporter", "--config", str(file))
    assert started.returncode == 2
    assert "configuring the client on cluster aa failed (invalid_config)" in started.stderr
    assert "security.tls.key_file with its key_password cannot be used" in started.stderr


@pytest.mark.parametrize("command", ["check", "exporter"])
def test_command_file_as_argument_names_the_option(command: str, good: str) -> None:
    done = mm2slo(command, good, COLUMNS="300")
    assert done.returncode == 2
    assert f"Unexpected argument '{good}'; give a configuration with --config FILE" in done.stderr


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("audit", "audit"),
        ("cutover check", "report"),
        ("exclude list", "store"),
        ("report serve", "report"),
        ("report slack", "report,slack"),
    ],
)
def test_main_missing_extra_names_all_packages_of_the_command(
    command: str,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run() -> None:
        raise ModuleNotFoundError("no", name="sqlalchemy")

    monkeypatch.setattr("mm2slo_cli.main.app", run)
    assert run_main(monkeypatch, *command.split()) == 2
    assert capsys.readouterr().err.endswith(f"pip install '.[{extra}]'\n")
