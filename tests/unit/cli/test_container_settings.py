"""What containers set: variables in place of options, the listen address, and health checks."""

import json
import logging
import socket
import ssl
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest
import trustme

from mm2slo_cli import main as root
from mm2slo_cli.config_files import load_source
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.service_process import log_to_file
from mm2slo_core.user_errors import UserError

EVERYWHERE = "0.0.0.0"  # noqa: S104 - parsed, not bound
CONFIG = {
    "clusters": {"us": {"bootstrap_servers": "us:9092"}, "eu": {"bootstrap_servers": "eu:9092"}},
    "flows": [{"flow": "us->eu"}],
}


def write_config(folder: Path, **sections: object) -> Path:
    path = folder / "mm2slo.yaml"
    path.write_text(json.dumps(CONFIG | sections), encoding="utf-8")
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["mm2slo", *arguments])
    try:
        return root.main()
    except SystemExit as ended:
        return int(ended.code or 0)


def source_of_exporter(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> ConfigSource:
    """The configuration that `mm2slo exporter` starts with."""
    found: list[ConfigSource] = []
    module = ModuleType("mm2slo_cli.settings_process")
    monkeypatch.setattr(module, "run", lambda source, _flows: found.append(source), raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert run(monkeypatch, "exporter", *arguments) == 0
    return found[0]


def test_variables_of_a_configuration_count_as_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "CONFIG": "/etc/mm2slo/mm2slo.yaml", "MM2": "/mm2/a.properties:/mm2/b.properties",
        "STRIMZI": "/mm2/mirror.yaml", "CONNECT_JSON": "/mm2/connectors.json",
        "WORKER": "/mm2/worker.properties", "SECRETS": "/run/secrets", "PATH": "/opt=/mm2 /tls=/t",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(f"MM2SLO_{name}", value)
    expected = ConfigSource(
        Path("/etc/mm2slo/mm2slo.yaml"),
        mm2=[Path("/mm2/a.properties"), Path("/mm2/b.properties")],
        strimzi=[Path("/mm2/mirror.yaml")],
        connect_json=[Path("/mm2/connectors.json")],
        worker=Path("/mm2/worker.properties"),
        secrets=Path("/run/secrets"),
        path=["/opt=/mm2", "/tls=/t"],
    )
    assert source_of_exporter(monkeypatch) == expected
    assert source_of_exporter(monkeypatch, "--config", "other.yaml").config == Path("other.yaml")


def test_empty_variables_count_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "MM2", "STRIMZI", "CONNECT_JSON", "WORKER", "SECRETS", "PATH"):
        monkeypatch.setenv(f"MM2SLO_{name}", "")
    assert source_of_exporter(monkeypatch) == ConfigSource()


def test_missing_file_of_a_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MM2SLO_MM2", "/etc/mm2slo/mm2.properties")
    assert run(monkeypatch, "exporter") == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (
        "",
        "/etc/mm2slo/mm2.properties: 1 problem\n"
        "/etc/mm2slo/mm2.properties: cannot be read: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("host", "sections", "listen"),
    [
        ("", {}, ("127.0.0.1:9469", "127.0.0.1:9470")),
        (EVERYWHERE, {}, (f"{EVERYWHERE}:9469", f"{EVERYWHERE}:9470")),
        ("::", {"exporter": {"poll_interval": "1s"}}, ("[::]:9469", "[::]:9470")),
        (
            EVERYWHERE,
            {"exporter": {"listen": "127.0.0.1:1"}},
            ("127.0.0.1:1", f"{EVERYWHERE}:9470"),
        ),
        (EVERYWHERE, {"report": {"listen": ":2"}}, (f"{EVERYWHERE}:9469", ":2")),
    ],
)
def test_listen_host_applies_unless_the_file_sets_an_address(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    sections: dict[str, object],
    listen: tuple[str, str],
) -> None:
    monkeypatch.setenv("MM2SLO_LISTEN_HOST", host)
    config, _ = load_source(ConfigSource(write_config(tmp_path, **sections)))
    assert (str(config.exporter.listen), str(config.report.listen)) == listen


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    """Answers /healthz, with 503 after its attribute `status` is set to that."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(httpd.status if self.path == "/healthz" else 404)  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.status = 200  # type: ignore[attr-defined]
        thread = Thread(target=httpd.serve_forever, args=[0.05])
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


@pytest.mark.parametrize("service", ["exporter", "report"])
def test_health_follows_the_configured_address(
    server: ThreadingHTTPServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    service: str,
) -> None:
    port = server.server_address[1]
    path = write_config(tmp_path, **{service: {"listen": f"{EVERYWHERE}:{port}"}})
    # A proxy of the environment is not asked for an address of this machine.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    arguments = ["health", *(["report"] if service == "report" else []), "--config", str(path)]
    assert run(monkeypatch, *arguments) == 0
    server.status = 503  # type: ignore[attr-defined]
    assert run(monkeypatch, *arguments) == 1
    assert capsys.readouterr().err == (
        f"{service} at 127.0.0.1:{port} answered /healthz with 503\n"
    )


def test_health_of_logship_follows_its_address_and_needs_its_section(
    server: ThreadingHTTPServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    section = {
        "endpoints": ["https://splunk:8088"], "token_file": "token", "sources": [{"paths": ["x"]}],
        "listen": f"127.0.0.1:{server.server_address[1]}",
    }  # fmt: skip
    path = write_config(tmp_path, logship=section)
    assert run(monkeypatch, "health", "logship", "--config", str(path)) == 0
    path = write_config(tmp_path)
    assert run(monkeypatch, "health", "logship", "--config", str(path)) == 2
    assert capsys.readouterr().err == "the configuration has no section logship\n"


def test_log_folder_gets_json_lines_and_its_error_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root_logger = logging.getLogger()
    handlers = root_logger.handlers[:]
    monkeypatch.delenv("MM2SLO_LOG_FOLDER", raising=False)
    log_to_file("repl-exporter")
    assert root_logger.handlers == handlers
    monkeypatch.setenv("MM2SLO_LOG_FOLDER", str(tmp_path))
    log_to_file("repl-exporter")
    [handler] = (each for each in root_logger.handlers if each not in handlers)
    try:
        root_logger.warning("disk of %s is full", "us")
    finally:
        root_logger.removeHandler(handler)
        handler.close()
    [line] = (tmp_path / "repl-exporter.log").read_text(encoding="utf-8").splitlines()
    assert (json.loads(line)["service"], json.loads(line)["message"]) == (
        "repl-exporter", "disk of us is full",
    )  # fmt: skip
    monkeypatch.setenv("MM2SLO_LOG_FOLDER", str(tmp_path / "none"))
    with pytest.raises(
        UserError, match=r"none/repl-exporter\.log': No such file .*; expected MM2SLO"
    ):
        log_to_file("repl-exporter")


def test_health_without_server_exits_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{bound.getsockname()[1]}"
        path = write_config(tmp_path, exporter={"listen": listen})
        assert run(monkeypatch, "health", "--config", str(path)) == 1
    assert f"exporter at {listen} does not answer: " in capsys.readouterr().err


@pytest.mark.parametrize("service", ["exporter", "report"])
def test_health_of_a_tls_server_accepts_its_certificate(
    server: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    certificate = trustme.CA().issue_cert("exporter.example.com")
    files = {"cert_file": tmp_path / "cert.pem", "key_file": tmp_path / "key.pem"}
    certificate.private_key_and_cert_chain_pem.write_to_path(files["cert_file"])
    certificate.private_key_pem.write_to_path(files["key_file"])
    named = {key: str(path) for key, path in files.items()}
    web = tmp_path / "web.yml"
    web.write_text(json.dumps({"tls_server_config": named}), encoding="utf-8")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files["cert_file"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    section = {"web_config_file": str(web)} if service == "exporter" else {"tls": named}
    listen = {"listen": f"127.0.0.1:{server.server_address[1]}"}
    path = write_config(tmp_path, **{service: listen | section})
    assert run(monkeypatch, "health", service, "--config", str(path)) == 0
