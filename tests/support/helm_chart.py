"""Renders the Helm chart with its examples; as a program, writes the committed renderings."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from strimzi_schemas import KubernetesLoader

FOLDER: Final = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
CHART: Final = FOLDER / "mm2slo"
CASES: Final = (
    "minimal",
    "strimzi",
    "openshift",
    "complete",
    "event-streams",
    "tenant-a",
    "tenant-b",
)
HELM: Final = shutil.which(os.environ.get("HELM", "helm"))

needs_helm = pytest.mark.skipif(HELM is None, reason="set HELM to Helm 3, or add it to PATH")


def namespace(case: str) -> str:
    """Where the release of *case* is."""
    return case if case.startswith("tenant") else "replication"


def run_helm(case: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Render the example *case* with additional *options*."""
    command = (HELM or "helm", "template", "mm2slo", CHART, "--namespace", namespace(case))
    version = ("--kube-version", "1.31.0")
    return subprocess.run(
        (*command, *version, *example_values(case), *options),
        capture_output=True,
        text=True,
        check=False,
    )


def example_values(case: str) -> tuple[str | Path, ...]:
    """Helm's options for the values of the example *case*."""
    resource = f"mirrorMaker2.resource={FOLDER / 'examples' / 'mirror.yaml'}"
    files = ("--set-file", resource) if case == "strimzi" else ()
    return ("--values", FOLDER / "examples" / f"{case}.yaml", *files)


def helm_resources(case: str) -> list[dict[str, Any]]:
    """The resources of *case*, as Helm renders them."""
    done = run_helm(case)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"RELEASE-NAMESPACE|UID-SUFFIX|SLACK-", done.stdout)
    return [each for each in yaml.load_all(done.stdout, KubernetesLoader) if each]


def render(case: str) -> str:
    """The resources of *case* in a fixed order, without the content of generated files."""
    found = helm_resources(case)
    for each in found:
        if each["kind"] in {"PrometheusRule", "AlertmanagerConfig"}:
            each["spec"] = {}
        elif "-board-" in each["metadata"]["name"] and "data" in each:
            each["data"] = dict.fromkeys(each["data"], "{}")
    found.sort(key=lambda each: (each["kind"], each["metadata"]["name"]))
    return yaml.dump_all(found, Dumper=yaml.CSafeDumper, sort_keys=False, width=100)


def rendering(case: str) -> list[dict[str, Any]]:
    """The committed resources of *case*."""
    text = (FOLDER / "renderings" / f"{case}.yaml").read_text(encoding="utf-8")
    return list(yaml.load_all(text, KubernetesLoader))


if __name__ == "__main__":
    for name in CASES:
        (FOLDER / "renderings" / f"{name}.yaml").write_text(render(name), encoding="utf-8")
