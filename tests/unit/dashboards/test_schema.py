"""The JSON conforms to Grafana's published schemas and its typed models."""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from generated_dashboards import Json, dashboards, panels
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from jsonschema import Draft7Validator

SCHEMAS = os.environ.get("MM2SLO_GRAFANA_SCHEMAS", "")
needs_schemas = pytest.mark.skipif(
    not SCHEMAS,
    reason="MM2SLO_GRAFANA_SCHEMAS names no folder with Grafana's schemas "
    "(grafana-foundation-sdk, folder jsonschema)",
)
# The typed models lack these fields of Prometheus annotations; Grafana's schema has them.
NOT_MODELLED = {
    "annotations.list.titleFormat",
    "annotations.list.textFormat",
    "annotations.list.useValueForTime",
}


@cache
def schema(name: str) -> Json:
    found: Json = json.loads((Path(SCHEMAS) / f"{name}.jsonschema.json").read_text("utf-8"))
    # Fields of any type are declared as objects in the schema.
    for owner, key in (("MatcherConfig", "options"), ("DynamicConfigValue", "value")):
        if owner in found["definitions"]:
            found["definitions"][owner]["properties"][key] = {}
    return found


def problems(document: object, name: str, definition: str) -> list[str]:
    subschema = {**schema(name), "$ref": f"#/definitions/{definition}"}
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in Draft7Validator(subschema).iter_errors(document)
    ]


@needs_schemas
@pytest.mark.parametrize("uid", dashboards())
def test_dashboard_conforms_to_schema(uid: str) -> None:
    found = dashboards()[uid]
    assert problems(found, "dashboard", "Dashboard") == []


@needs_schemas
@pytest.mark.parametrize("uid", dashboards())
def test_panels_conform_to_their_schemas(uid: str) -> None:
    for panel in panels(dashboards()[uid]):
        name = panel["type"].replace("-", "")
        assert problems(panel["options"], name, "Options") == [], panel["title"]
        if custom := panel["fieldConfig"]["defaults"].get("custom"):
            assert problems(custom, name, "FieldConfig") == [], panel["title"]
        for target in panel["targets"]:
            assert problems(target, "prometheus", "Dataquery") == [], panel["title"]


def find_lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Paths of *before* that *after* lacks or changes; added defaults are allowed."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            inner = f"{path}.{key}".lstrip(".")
            if key not in after:
                yield inner
            else:
                yield from find_lost(value, after[key], inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from find_lost(one, other, path)
    elif before != after:
        yield f"{path}: {before!r} is {after!r}"


@pytest.mark.parametrize("uid", dashboards())
def test_typed_models_preserve_dashboard(uid: str) -> None:
    register_default_plugins()
    before = dashboards()[uid]
    read = Dashboard.from_json(json.loads(json.dumps(before)))
    after = json.loads(json.dumps(read, cls=JSONEncoder))
    assert sorted(set(find_lost(before, after)) - NOT_MODELLED) == []
