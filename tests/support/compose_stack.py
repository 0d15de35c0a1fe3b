"""The compose files: the model that Docker Compose makes of them, and their services as processes.

`compose_model` reads the files, `ComposeProcesses` starts services with their mounts, commands and
environment; only host names, ports and mount prefixes are substituted, as its table lists.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeGuard

import yaml

from mm2slo_audit.spark.spark_properties import SparkOptions, ivy_directory
from mm2slo_lab.kafka_runtime import FLAGS, classpath, find_java
from mm2slo_lab.lab_monitoring import find_program
from mm2slo_lab.lab_topology import DEFAULT_VERSION, mirror_version
from mm2slo_lab.managed_process import ManagedProcess, ProcessSpec, free_ports, wait_for

_IMAGE_COMMANDS: Final = {
    "mm2slo": "mm2slo",
    "mm2slo-audit": "mm2slo",
    "prom/prometheus": "prometheus",
    "prom/alertmanager": "alertmanager",
}

_KAFKA: Final = {
    "kafka-storage.sh": "kafka.tools.StorageTool",
    "kafka-server-start.sh": "kafka.Kafka",
    "connect-mirror-maker.sh": "org.apache.kafka.connect.mirror.MirrorMaker",
}
_PORT_OPTION: Final = re.compile(r"--([\w-]+-)?port")
_TIMEOUT: Final = 600.0


class ComposeProcesses:
    """Starts services of *model* in *folder*; a context manager that kills them.

    `variables` are added to each environment, in place of names that only Compose resolves.
    """

    def __init__(self, model: Mapping[str, Service], folder: Path) -> None:
        self._model = model
        self._folder = folder
        self.variables: dict[str, str] = {}
        self._running: dict[str, ManagedProcess] = {}
        self._host = re.compile(
            rf"\b({'|'.join(model)}|127\.0\.0\.1|0\.0\.0\.0)([:/])(\d{{4,5}})\b"
        )
        found = {
            m[3] for name in model for text in self._texts(name) for m in self._host.finditer(text)
        }
        found |= {
            value
            for service in model.values()
            for option, value in itertools.pairwise(service.command)
            if _PORT_OPTION.fullmatch(option)
        }
        self._ports = dict(zip(sorted(found), map(str, free_ports(len(found))), strict=True))
        self._paths = {name: self._mount(service) for name, service in model.items()}
        self._write_kafka_scripts()

    def _texts(self, name: str) -> list[str]:
        service = self._model[name]
        health = service.definition.get("healthcheck", {}).get("test", [])
        texts = [*service.command, *service.environment.values(), *health]
        for source in service.mounts.values():
            if _is_shipped(source):
                texts += [file.read_text(encoding="utf-8") for file in _files(source)]
        return texts

    def _mount(self, service: Service) -> dict[str, str]:
        """Copy shipped files; returns local paths by path in the container."""
        root = self._folder / service.name
        table = {
            "/tmp": str(root / "tmp"),  # noqa: S108 - a place in the container
            "/opt/kafka/bin": str(self._folder / "kafka"),
            "/opt/spark/pyspark": str(_package_folder("pyspark")),
        }
        for target, source in service.mounts.items():
            if _is_shipped(source):
                table[target] = str(root / target.strip("/"))
            else:  # another folder of this machine is what it is
                table[target] = str(self._folder / "volumes" / source)
        for path in table.values():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        for target, source in service.mounts.items():
            if not _is_shipped(source):
                Path(table[target]).mkdir(exist_ok=True)
                continue
            for file in _files(source):
                copy = Path(table[target]) / file.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(self._local(file.read_text(encoding="utf-8"), table), "utf-8")
        (root / "tmp").mkdir(exist_ok=True)
        return table

    def table(self) -> str:
        """Every substitution."""
        rows = [("*", f"host:{port}", f"localhost:{free}") for port, free in self._ports.items()]
        rows += [("*", name, value) for name, value in self.variables.items()]
        for name, paths in self._paths.items():
            rows += [(name, path, local) for path, local in paths.items()]
        return "\n".join(f"{name:14} {shipped:32} {here}" for name, shipped, here in rows)

    def _local(self, text: str, paths: Mapping[str, str]) -> str:
        longest = sorted(paths, key=len, reverse=True)
        prefix = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, longest))})(?![\w.-])")
        text = prefix.sub(lambda m: paths[m[1]], text)
        return self._host.sub(lambda m: f"{_here(m[1])}{m[2]}{self._ports[m[3]]}", text)

    def local(self, service: str, text: str) -> str:
        """*text* of *service* as it is here."""
        return self._local(text, self._paths[service])

    def replace(self, path: str, text: str) -> None:
        """Replace a file that is mounted at *path*, in all services."""
        for name in self._model:
            here = self.local(name, path)
            if here != path and Path(here).exists():
                Path(here).write_text(text, encoding="utf-8")

    def url(self, service: str, port: int, path: str = "/") -> str:
        return f"http://{self.local(service, f'127.0.0.1:{port}')}{path}"

    def command(self, name: str, arguments: list[str] | None = None) -> list[str]:
        """The command line of a service with its environment; *arguments* replace its command."""
        service = self._model[name]
        shipped = arguments or service.command
        given = [
            self._argument(name, option, value)
            for option, value in zip(["", *shipped], shipped, strict=False)
        ]
        image = service.definition["image"].partition(":")[0]
        if arguments is None and "entrypoint" not in service.definition:
            given = [_IMAGE_COMMANDS[image], *given]
        if image.startswith("prom/") and arguments is None:
            given[0] = find_program(given[0])
        values = {key: self.local(name, value) for key, value in service.environment.items()}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        home = str(self._folder / name)
        settings = {"PATH": path, "HOME": home, **self.variables, **values}
        if image == "mm2slo-audit":  # the image has jars and one Java
            settings["MM2SLO_JARS"] = str(ivy_directory(SparkOptions()) / "jars")
            settings["JAVA_HOME"] = str(Path(find_java(17)).resolve().parents[1])
        return ["env", "-i", *(f"{key}={value}" for key, value in settings.items()), *given]

    def _argument(self, service: str, option: str, value: str) -> str:
        """*value* as it is here; *option* precedes it."""
        if option == "--host":
            return _here(value)
        is_port = _PORT_OPTION.fullmatch(option)
        return self._ports[value] if is_port else self.local(service, value)

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a service that ends by itself."""
        command = self.command(name)
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )

    def start(self, name: str, instance: str | None = None) -> ManagedProcess:
        """Start a service once those of its dependencies that were started are healthy.

        *instance* is another name, if several processes are started.
        """
        instance = instance or name
        for other, condition in self._model[name].dependencies.items():
            if condition == "service_healthy" and other in self._running:
                self.wait_healthy(other)
        log = self._folder / instance / "log"
        process = ManagedProcess(ProcessSpec(instance, tuple(self.command(name)), log))
        process.start()
        self._running[instance] = process
        return process

    def stop(self, name: str) -> int | None:
        """Send SIGTERM; returns the exit code."""
        process = self._running[name]
        process.stop(_TIMEOUT)
        return process.exit_code

    def wait_healthy(self, name: str) -> None:
        """Run the service's health check until it succeeds."""
        _, *test = self._model[name].definition["healthcheck"]["test"]
        command = self.command(name, test)
        process = self._running[name]

        def is_healthy() -> bool:
            done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False)
            return done.returncode == 0

        process.wait_until(is_healthy, "healthy", _TIMEOUT)

    def log(self, name: str) -> str:
        return (self._folder / name / "log").read_text(encoding="utf-8", errors="replace")

    def wait_log(self, name: str, text: str) -> None:
        """Wait until the log of *name* contains *text*."""
        wait_for(lambda: text in self.log(name), f"{text!r} in the log of {name}", _TIMEOUT)

    def _write_kafka_scripts(self) -> None:
        folder = self._folder / "kafka"
        folder.mkdir(exist_ok=True)
        java, jars = find_java(17), classpath(mirror_version(DEFAULT_VERSION))
        for name, main in _KAFKA.items():
            script = folder / name
            options = " ".join(("$KAFKA_HEAP_OPTS", *FLAGS, "$KAFKA_LOG4J_OPTS"))
            script.write_text(f'#!/bin/sh\nexec {java} {options} -cp {jars} {main} "$@"\n', "utf-8")
            script.chmod(0o755)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        for process in self._running.values():
            process.kill()


def _is_shipped(source: Path | str) -> TypeGuard[Path]:
    """Whether *source* is no volume, and a part of this repository."""
    return isinstance(source, Path) and source.is_relative_to(ROOT)


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]


def _here(host: str) -> str:
    """Addresses stay numeric, because listeners need one; wildcards become loopback."""
    return "127.0.0.1" if host[0].isdigit() else "localhost"


ROOT: Final = Path(__file__).parents[2]
COMPOSE: Final = ROOT / "docker-compose.yml"
STACK: Final = ROOT / "deploy" / "compose" / "stack.yml"
_VARIABLE: Final = re.compile(r"\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}")
_REPLACED: Final = {"command", "entrypoint", "test"}


@dataclass(frozen=True)
class Service:
    """A service; `folder` is where its relative paths start."""

    name: str
    definition: Mapping[str, Any]
    folder: Path

    @property
    def command(self) -> list[str]:
        """Entry point and command; an empty entry point is the image's."""
        return [*self.definition.get("entrypoint", []), *self.definition.get("command", [])]

    @property
    def environment(self) -> dict[str, str]:
        return dict(self.definition.get("environment", {}))

    @property
    def mounts(self) -> dict[str, Path | str]:
        """A path or the name of a volume, by path in the container."""
        parts = [each.split(":") for each in self.definition.get("volumes", [])]
        return {
            target: self.folder / source if source.startswith((".", "/")) else source
            for source, target, *_ in parts
        }

    @property
    def dependencies(self) -> dict[str, str]:
        """Conditions by service."""
        found = self.definition.get("depends_on", {})
        return {name: dependency["condition"] for name, dependency in found.items()}


def compose_model(file: Path, variables: Mapping[str, str]) -> dict[str, Service]:
    """The services of *file* and of the files that it includes."""
    document = _interpolated(yaml.safe_load(file.read_text(encoding="utf-8")), variables)
    services: dict[str, Service] = {}
    for include in document.get("include", []):
        own = {**_env_file(file.parent / include["env_file"]), **variables}
        first, *overrides = (file.parent / path for path in include["path"])
        services |= compose_model(first, own)
        for override in overrides:
            for name, each in compose_model(override, own).items():
                merged = _merged(services[name].definition, each.definition)
                services[name] = Service(name, merged, first.parent)
    for name, definition in document["services"].items():
        services[name] = Service(name, definition, file.parent)
    return services


def _env_file(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def _interpolated(node: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(node, dict):
        return {key: _interpolated(value, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [_interpolated(each, variables) for each in node]
    return _VARIABLE.sub(lambda m: _value(m, variables), node) if isinstance(node, str) else node


def _value(match: re.Match[str], variables: Mapping[str, str]) -> str:
    name, kind, text = match.groups()
    if name is None:
        return "$"
    if not variables.get(name) and kind == "?":
        raise KeyError(f"{name} is required: {text}")
    return variables.get(name) or text or ""


def _merged(base: Any, override: Any, key: str = "") -> Any:
    if isinstance(base, dict) and isinstance(override, dict):
        both = {name: _merged(base[name], override[name], name) for name in base.keys() & override}
        return {**base, **override, **both}
    return [*base, *override] if isinstance(base, list) and key not in _REPLACED else override


def shipped_events(log: str) -> list[dict[str, Any]]:
    """The events in the log of the service `splunk`; a line that is being written is left out."""
    return [json.loads(line) for line in log.rpartition("\n")[0].splitlines() if line[:1] == "{"]
