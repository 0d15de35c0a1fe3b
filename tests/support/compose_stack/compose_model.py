"""Compose files with their includes, overrides and variables, as Docker Compose reads them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[3]
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
