"""Readiness of services, as systemd receives it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mm2slo_cli.service_process import notify_ready


@pytest.mark.parametrize("is_abstract", [False, True])
def test_notify_ready_sends_the_state_to_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_abstract: bool
) -> None:
    name = f"@mm2slo-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0"))
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        notify_ready()
        assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("name", ["", "/nonexistent/notify"])
def test_notify_ready_without_service_manager_does_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    notify_ready()


SERVICES = {
    "exporter": ["exporter"],
    "report": ["report", "serve"],
    "logship": ["logship", "run"],
}


@pytest.mark.parametrize("command", SERVICES.values(), ids=SERVICES)
def test_service_is_ready_once_it_serves(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "token").write_text("token")
    (tmp_path / "mm2slo.yaml").write_text(
        "clusters: {us: {bootstrap_servers: 127.0.0.1:1}, eu: {bootstrap_servers: 127.0.0.1:1}}\n"
        "flows: [{flow: us->eu}]\n"
        "exporter: {listen: 127.0.0.1:0}\n"
        "report: {listen: 127.0.0.1:0}\n"
        "logship: {endpoints: ['http://127.0.0.1:1'], token_file: token,\n"
        "  listen: 127.0.0.1:0, sources: [{paths: ['*.log']}]}\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        with subprocess.Popen(
            [sys.executable, "-m", "mm2slo_cli", *command, "--config", "mm2slo.yaml"],
            cwd=tmp_path, env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ) as process:  # fmt: skip
            try:
                assert manager.recv(100) == b"READY=1"
            finally:
                process.send_signal(signal.SIGTERM)
                output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "serving" in output or "shipping" in output
