"""The compose files against the Compose specification, the tree and the command line."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from compose_stack import COMPOSE, ROOT, STACK, Service, compose_model

from mm2slo_cli.main import main
from mm2slo_dashboards.dashboard_files import DATA_SOURCES, PROVIDER

if TYPE_CHECKING:
    Refusal = Callable[..., str]

FOLDER = STACK.parent
FILES = (COMPOSE, STACK, FOLDER / "demo" / "override.yml")
DOCKERFILE = ROOT / "deploy" / "image" / "Dockerfile"
DOC = ROOT / "docs" / "compose.md"
BIN = Path(sys.executable).parent
SERVICES = compose_model(COMPOSE, {})
OWN = [each for each in SERVICES.values() if each.definition["image"].startswith("mm2slo")]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    command = (str(BIN / command[0]), *command[1:])
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """What `mm2slo` prints about a command line that it refuses.

    With --help, all other options are parsed, and nothing runs.
    """

    def run(*command: str) -> str:
        monkeypatch.setattr("sys.argv", ["mm2slo", *command, "--help"])
        with suppress(SystemExit):
            main()
        return capsys.readouterr().err

    return run


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def cli_command(service: Service) -> list[str] | None:
    """The service's `mm2slo` command; None for another program."""
    first, *arguments = service.command
    if "entrypoint" not in service.definition:
        return service.command
    return arguments if first == "mm2slo" else None


def test_files_follow_compose_specification() -> None:
    done = run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", *map(str, FILES))
    assert done.returncode == 0, done.stdout


def test_hadolint_accepts_dockerfile() -> None:
    done = run("hadolint", str(DOCKERFILE))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_service_is_confined(service: Service) -> None:
    found = service.definition
    user, _, _group = found["user"].partition(":")
    assert int(user) > 0
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    assert "cap_add" not in found
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert found["mem_limit"]
    assert not {"privileged", "network_mode", "networks", "pid", "ipc"} & found.keys()


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_service_publishes_ports_on_loopback_only_and_checks_its_port(service: Service) -> None:
    health = " ".join(service.definition.get("healthcheck", {}).get("test", []))
    if "mm2slo health" in health:  # asks at the address in the configuration
        health = (FOLDER / "config" / "mm2slo.yaml").read_text(encoding="utf-8")
    for port in service.definition.get("ports", []):
        address, host_port, inner = port.split(":")
        assert address == "127.0.0.1"
        assert host_port == inner
        assert inner in health
        assert inner in (FOLDER / "demo" / "addresses.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_service_mounts_existing_files_and_declared_volumes(service: Service) -> None:
    declared = {name for file in FILES for name in read_yaml(file).get("volumes", {})}
    for source in service.mounts.values():
        assert source.exists() if isinstance(source, Path) else source in declared


def test_services_that_connect_to_clusters_mount_secrets() -> None:
    """The executors of Spark read certificate files as well, and logship reads the whole file."""
    clients = {"us", "mirrormaker", "traffic", "exporter", "report", "audit"}
    clients |= {"spark-worker", "logship"}
    without = {name for name in clients if "/run/secrets" not in SERVICES[name].mounts}
    assert without == set()


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_image_is_pinned(service: Service) -> None:
    name, _, tag = service.definition["image"].partition(":")
    assert re.fullmatch(r"v?\d+(\.\d+)+", tag)
    if name.startswith("mm2slo"):
        build = service.definition["build"]
        assert tag == VERSION
        assert (service.folder / build["context"]).resolve() == ROOT
        assert ROOT / build["dockerfile"] == DOCKERFILE
        assert name == {"exporter": "mm2slo", "audit": "mm2slo-audit"}[build["target"]]
        assert f" AS {build['target']}\n" in DOCKERFILE.read_text(encoding="utf-8")


def test_every_dependency_exists_and_every_one_shot_is_awaited() -> None:
    """`up --wait` fails for a container that has ended, unless another one depends on its end."""
    awaited: dict[str, set[str]] = {}
    for service in SERVICES.values():
        for name, condition in service.dependencies.items():
            awaited.setdefault(name, set()).add(condition)
            assert (condition == "service_healthy") <= ("healthcheck" in SERVICES[name].definition)
    one_shots = {name for name, each in SERVICES.items() if each.definition["restart"] == "no"}
    assert one_shots == {"init", "config", "logs-config", "addresses"}
    for name, conditions in awaited.items():
        assert (name in one_shots) == (conditions == {"service_completed_successfully"})
    assert one_shots <= awaited.keys()


@pytest.mark.parametrize("service", OWN, ids=lambda each: each.name)
def test_command_line_is_accepted(service: Service, refusal: Refusal) -> None:
    command = cli_command(service)
    in_script = [each.split() for each in re.findall(r"(?m)^mm2slo (.*)$", service.command[-1])]
    for line in in_script if command is None else [command]:
        assert refusal(*line) == ""


def test_health_checks_are_stated_and_accepted(refusal: Refusal) -> None:
    # A service without its own one would have the image's, which asks the exporter.
    found = [each.definition["healthcheck"].get("test", []) for each in OWN]
    commands = {tuple(test[2:]) for test in found if test[1:2] == ["mm2slo"]}
    assert commands == {("health",), ("health", "report"), ("health", "logship")}
    for command in commands:
        assert refusal(*command) == ""


def test_variables_are_read_by_the_command_line_or_the_configuration() -> None:
    config = "".join(each.read_text("utf-8") for each in (FOLDER / "config").glob("*.yaml"))
    code = "".join(
        (ROOT / "cli" / "mm2slo_cli" / f"{name}.py").read_text(encoding="utf-8")
        for name in ("config_options", "service_process")
    )
    for service in OWN:
        for name in service.environment:
            if name.startswith("MM2SLO_"):
                assert f'"{name}"' in code or f"${{env:{name}}}" in config, name


def test_page_names_every_variable_secret_volume_and_profile() -> None:
    page = DOC.read_text(encoding="utf-8")
    stack = read_yaml(STACK)
    text = STACK.read_text(encoding="utf-8")
    named = {
        *re.findall(r"\$\{(\w+)", text),
        *re.findall(r"/run/secrets/([a-z][\w-]*)", text),
        *re.search(r"for name in (.*); do", text)[1].split(),  # type: ignore[index]
        *(stack["volumes"].keys() - {"secrets"}),
        *(name for each in stack["services"].values() for name in each.get("profiles", [])),
    }
    assert {name for name in named if f"`{name}`" not in page} == set()


def test_stack_without_folders_asks_for_them() -> None:
    with pytest.raises(KeyError, match="MM2SLO_CONFIG_FOLDER is required: folder with"):
        compose_model(STACK, {})


def test_prometheus_configuration_differs_from_installed_one_in_addresses_only() -> None:
    here, installed = (
        read_yaml(ROOT / "deploy" / folder / "prometheus.yml")
        for folder in ("compose", "prometheus")
    )
    own = [job["job_name"] for job in installed["scrape_configs"]]
    assert [job["job_name"] for job in here["scrape_configs"]] == [*own, "mm2slo-report"]
    assert here["global"] == installed["global"]
    assert [Path(each).name for each in here["rule_files"]] == [
        Path(each).name for each in installed["rule_files"]
    ]


@pytest.mark.parametrize(
    ("name", "generated"), [("datasources.yml", DATA_SOURCES), ("dashboards.yml", PROVIDER)]
)
def test_grafana_files_differ_from_generated_ones_in_addresses_only(
    name: str, generated: str
) -> None:
    def comparable(path: Path) -> str:
        lines = path.read_text(encoding="utf-8").splitlines()[1:]
        return "\n".join(re.sub(r"(url|path|isDefault): .*", r"\1", line) for line in lines)

    shipped = ROOT / "dashboards" / "generated" / generated
    assert comparable(FOLDER / "grafana" / name) == comparable(shipped)
