"""`mm2slo report serve` as a process: requests, signals, tokens and TLS."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.report_serve import create_settings, open_server
from mm2slo_core.user_errors import UserError

CONFIG = """\
clusters: {{us: {{bootstrap_servers: "127.0.0.1:1"}}, eu: {{bootstrap_servers: "127.0.0.1:2"}}}}
flows: [{{flow: us->eu}}]
audit: {{store: "sqlite:///{folder}/results.db"}}
exporter: {{listen: "127.0.0.1:1"}}
report: {report}
"""
COMMAND = [sys.executable, "-W", "error", "-m", "mm2slo_cli", "report", "serve", "--config"]


def config(folder: Path, **report: Any) -> Path:
    path = folder / "mm2slo.yaml"
    settings = {"listen": "127.0.0.1:0", **report}
    path.write_text(CONFIG.format(folder=folder, report=json.dumps(settings)))
    return path


def test_settings_contain_the_configured_links(tmp_path: Path) -> None:
    path = config(tmp_path)
    names = ("dashboard", "runbook", "prometheus", "splunk")
    links = {name: f"https://{name}.example" for name in names}
    with path.open("a", encoding="utf-8") as file:
        file.write(f"alerting: {{links: {json.dumps(links)}}}\n")
    found = create_settings(read_config(ConfigSource(path))).references
    assert {name: getattr(found, name) for name in names} == links


@contextmanager
def running(path: Path) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Yield the process, its URL from its log, and its log lines."""
    with subprocess.Popen(
        [*COMMAND, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            lines: list[str] = []
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                message = json.loads(line)["message"]
                if message.startswith("serving "):
                    yield process, message.removeprefix("serving ").rstrip("/"), lines
                    break
            else:
                pytest.fail("".join(lines))
        finally:
            process.kill()


def start_error(path: Path) -> str:
    """Return the message of a start that fails."""
    with pytest.raises(UserError) as raised, open_server(read_config(ConfigSource(path))):
        pass
    return str(raised.value)


def remaining_log(process: subprocess.Popen[str]) -> list[str]:
    """Return the log until the process exits with 0."""
    assert process.stdout is not None
    lines = list(process.stdout)
    assert process.wait(30) == 0
    return lines


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_serve_responds_until_signal(tmp_path: Path, number: signal.Signals) -> None:
    with running(config(tmp_path)) as (process, address, lines):
        assert requests.get(f"{address}/healthz", timeout=10).json()["status"] == "ok"
        found = requests.get(f"{address}/slo", timeout=10)
        assert found.headers["content-type"] == "application/json"
        assert "server" not in found.headers
        assert found.json()["headline"] == {
            "objectives": 6, "breached": 0, "at_risk": 0, "no_data": 6, "met": 0, "idle": 0,
            "stale": 0,
        }  # fmt: skip
        # Without its exporter the service still responds.
        assert requests.get(f"{address}/flows/us-to-eu/readiness", timeout=10).status_code == 502
        assert requests.get(f"{address}/", timeout=10).status_code == 200
        process.send_signal(number)
        lines.extend(remaining_log(process))
    assert all(json.loads(line)["level"] in {"INFO", "WARNING"} for line in lines)


def test_serve_with_tokens_and_tls_logs_no_token(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    digest = hashlib.sha256(b"s3cret").hexdigest()
    (tmp_path / "tokens").write_text(f"{digest} read grafana\n{'0' * 64} read:us->xx ops\n")
    path = config(
        tmp_path,
        tokens_file=str(tmp_path / "tokens"),
        tls={"cert_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")},
        log={"level": "debug"},
    )
    with running(path) as (process, address, lines):
        assert address.startswith("https://127.0.0.1:")
        kept = str(tmp_path / "ca.pem")
        assert requests.get(f"{address}/slo", timeout=10, verify=kept).status_code == 401
        headers = {"Authorization": "Bearer s3cret"}
        found = requests.get(f"{address}/slo", timeout=10, verify=kept, headers=headers)
        assert found.json()["total"] == 6
        assert "max-age" in found.headers["strict-transport-security"]
        host, port = address.removeprefix("https://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as plain:
            plain.sendall(b"GET /slo HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" not in plain.recv(100)
        process.send_signal(signal.SIGTERM)
        lines.extend(remaining_log(process))
    assert "us->xx of token 'ops' matches no configured flow" in "".join(lines)
    assert "s3cret" not in "".join(lines)
    assert digest not in "".join(lines)


def test_serve_on_network_without_tokens_fails(tmp_path: Path) -> None:
    message = start_error(config(tmp_path, listen=":0"))
    assert message == (
        "report.listen is every interface and no tokens are configured, so any client on the "
        "network could read: set report.tokens_file, or listen on 127.0.0.1"
    )


def test_serve_with_unusable_file_or_port_fails(tmp_path: Path) -> None:
    assert "cannot read report.tokens_file 'nowhere': No such file" in start_error(
        config(tmp_path, tokens_file="nowhere")
    )
    (tmp_path / "empty").write_text("")
    files = {"cert_file": str(tmp_path / "empty"), "key_file": str(tmp_path / "empty")}
    assert "expected a PEM certificate chain and its" in start_error(config(tmp_path, tls=files))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = start_error(config(tmp_path, listen=f"127.0.0.1:{port}"))
    assert message == (
        f"cannot listen on 127.0.0.1:{port}: the port is in use; "
        "stop the other process or set report.listen to a free port"
    )


def test_report_import_loads_no_server() -> None:
    code = (
        "import sys; from mm2slo_cli.main import app; import mm2slo_cli.report;"
        "print([m for m in sys.modules if m.partition('.')[0] in"
        " {'fastapi', 'uvicorn', 'sqlalchemy', 'requests', 'jinja2', 'mm2slo_report'}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ},
    )  # fmt: skip
    assert done.stdout == "[]\n"
