"""deploy/image against pyproject.toml, requirements-dev.lock and the tree."""

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mm2slo_audit.spark.spark_properties import installed_connector

ROOT = Path(__file__).parents[3]
IMAGE = ROOT / "deploy" / "image"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = ("report", "slack", "postgres", "dashboards", "logship")
PIN = re.compile(r"^(\S+)==(\S+)(?: ; (.*?))? \\$", re.MULTILINE)


def pins(lock: Path) -> dict[str, str]:
    """Versions by package, of those that Linux needs."""
    found = PIN.findall(lock.read_text(encoding="utf-8"))
    return {
        name: version
        for name, version, marker in found
        if not marker or Requirement(f"{name}; {marker}").marker.evaluate()  # type: ignore[union-attr]
    }


def requirements(package: str) -> list[str]:
    if package != "mm2slo":
        return requires(package) or []
    project = PROJECT["project"]
    extras = project["optional-dependencies"].items()
    optional = (f"{text}; extra == '{name}'" for name, texts in extras for text in texts)
    return [*project["dependencies"], *optional]


def needed(name: str, *extras: str) -> set[str]:
    """The packages that *name* with *extras* needs, from pyproject.toml and what is installed."""
    found: set[str] = set()
    pending = [(name, frozenset(extras))]
    seen = set(pending)
    while pending:
        package, wanted = pending.pop()
        for text in requirements(package):
            requirement = Requirement(text)
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": each}) for each in {"", *wanted}):
                continue
            dependency = canonicalize_name(requirement.name)
            found.add(dependency)
            entry = (dependency, frozenset(requirement.extras))
            if entry not in seen:
                seen.add(entry)
                pending.append(entry)
    return found - {"mm2slo"}


@pytest.mark.parametrize(
    ("target", "packages"),
    [("exporter", needed("mm2slo", *EXTRAS)), ("audit", {"pyspark"} | needed("pyspark"))],
)
def test_lock_has_the_packages_and_versions_of_development(target: str, packages: set[str]) -> None:
    locked = pins(IMAGE / f"requirements-{target}.lock")
    development = pins(ROOT / "requirements-dev.lock")
    assert locked == {name: development[name] for name in packages}, (
        "run deploy/scripts/image-locks"
    )


def test_locks_have_no_address() -> None:
    assert not [each.name for each in IMAGE.glob("*.lock") if "://" in each.read_text("utf-8")]


def test_build_lock_has_the_build_requirements() -> None:
    locked = pins(IMAGE / "requirements-build.lock")
    for text in PROJECT["build-system"]["requires"]:
        requirement = Requirement(text)
        assert locked[requirement.name] in requirement.specifier


def test_connector_jars_are_those_of_the_audit() -> None:
    lines = (IMAGE / "connector-jars.sha256").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  \S+\.jar", line) for line in lines)
    names = {line.split()[1] for line in lines}
    group, artifact, version = installed_connector().coordinates.split(":")
    assert f"{group}_{artifact}-{version}.jar" in names
    air_gap = (ROOT / "docs" / "audit-air-gap.md").read_text(encoding="utf-8")
    assert names == set(re.findall(r"^    (\S+\.jar)$", air_gap, re.MULTILINE))


def test_version_label_is_the_version_of_the_package() -> None:
    labels = re.findall(
        r'image\.version="(.*?)"', (IMAGE / "Dockerfile").read_text(encoding="utf-8")
    )
    assert labels == [PROJECT["project"]["version"]]


def test_build_context_has_every_package() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    included = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert [each for each in packages if not each.startswith(tuple(included))] == []
