"""Custom resource definitions of Strimzi (v1) and of the Prometheus operator.

They are not part of the repository.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft4Validator

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("STRIMZI_DEFINITIONS", ROOT.parent / "shared" / "kubernetes"))

needs_definitions = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="set STRIMZI_DEFINITIONS to a folder with Strimzi's definitions"
)


class KubernetesLoader(yaml.CSafeLoader):
    """Reads `=` as text, which YAML 1.1 reserves."""


KubernetesLoader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)


@cache
def _validator(kind: str) -> Draft4Validator:
    path = FOLDER / f"strimzi-{kind.lower()}-v1.yaml"
    if not path.exists():
        path = FOLDER / f"monitoring.coreos.com_{kind.lower()}s.yaml"
    (definition,) = yaml.load_all(path.read_text(encoding="utf-8"), KubernetesLoader)
    (version,) = definition["spec"]["versions"]
    return Draft4Validator(_strict(version["schema"]["openAPIV3Schema"]))


def _strict(schema: Any) -> Any:
    """*schema* that also refuses unknown fields, which Kubernetes drops."""
    if isinstance(schema, dict):
        schema = {key: _strict(each) for key, each in schema.items()}
        if isinstance(schema.get("properties"), dict) and "type" in schema:
            schema.setdefault("additionalProperties", False)
    return [_strict(each) for each in schema] if isinstance(schema, list) else schema


def schema_errors(text: str) -> list[str]:
    """What Kubernetes would refuse or drop of the resources in *text*."""
    return [
        f"{error.json_path}: {error.message}"
        for resource in yaml.load_all(text, KubernetesLoader)
        for error in _validator(resource["kind"]).iter_errors(
            {key: value for key, value in resource.items() if key != "metadata"}
        )
    ]
