"""Strimzi's custom resource definitions (v1), which are not part of the repository."""

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


@cache
def _validator(kind: str) -> Draft4Validator:
    text = (FOLDER / f"strimzi-{kind.lower()}-v1.yaml").read_text(encoding="utf-8")
    (version,) = yaml.load(text, yaml.CSafeLoader)["spec"]["versions"]
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
        for resource in yaml.load_all(text, yaml.CSafeLoader)
        for error in _validator(resource["kind"]).iter_errors(
            {key: value for key, value in resource.items() if key != "metadata"}
        )
    ]
