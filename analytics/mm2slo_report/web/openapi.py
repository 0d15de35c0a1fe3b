"""The OpenAPI document of the service, with examples and schemas derived from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi

from mm2slo_report.web.problem_details import REQUIRED_MEMBERS
from mm2slo_report.web.response_docs import EXAMPLE, PROBLEM_EXAMPLE

if TYPE_CHECKING:
    from fastapi import FastAPI

_DESCRIPTION: Final = """\
Service level objectives of MirrorMaker 2 flows. Every response is as of one instant (`as_of`, a
whole minute). Values are neither rounded nor clamped; null means unknown or not applicable, never
zero. Times are RFC 3339 in UTC, durations are in seconds, ratios are between 0 and 1.
"""
_SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "If tokens are configured."},
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "The token as password; read only.",
    },
}

_OPEN_OBJECTS: Final = frozenset({"faults", "versions"})
"""Objects with arbitrary keys."""


def document(app: FastAPI, version: str) -> dict[str, Any]:
    """The document, built on first use."""
    if not app.openapi_schema:
        built = get_openapi(
            title="mm2slo report", version=version, description=_DESCRIPTION, routes=app.routes
        )
        built.setdefault("components", {})["securitySchemes"] = _SECURITY
        built["security"] = [{}, {"bearer": []}, {"basic": []}]
        _add_examples(built)
        app.openapi_schema = built
    return app.openapi_schema


def schema_of(value: Any, name: str = "") -> dict[str, Any]:
    """The schema of documents like *value*, the member *name*.

    Every member is required; unknown values are null.
    """
    if isinstance(value, dict) and name in _OPEN_OBJECTS:
        inner = [schema_of(each) for each in value.values()][:1]
        return {"type": ["object", "null"], "additionalProperties": inner[0] if inner else {}}
    if isinstance(value, dict):
        return {
            "type": ["object", "null"],
            "properties": {key: schema_of(each, key) for key, each in value.items()},
            "required": list(value),
        }
    if isinstance(value, list):
        found: dict[str, Any] = {"type": "array"}
        return {**found, "items": schema_of(value[0])} if value else found
    for kind, type_name in ((bool, "boolean"), (int, "number"), (float, "number"), (str, "string")):
        if isinstance(value, kind):
            return {"type": [type_name, "null"]}
    return {}


def _add_examples(node: Any) -> None:
    """Insert examples and schemas where routes name them; simplify parameter schemas."""
    # Imported on first use to keep the start fast.
    from mm2slo_report.web.openapi_examples import examples

    if isinstance(node, list):
        for each in node:
            _add_examples(each)
    if not isinstance(node, dict):
        return
    if "in" in node and "schema" in node:
        node["schema"] = _without_null(node["schema"])
    name = node.pop(EXAMPLE, None)
    if name is not None:
        node["example"] = examples()[name]
        schema = node.setdefault("schema", schema_of(node["example"]))
        if name == PROBLEM_EXAMPLE:
            # Some problems have further members.
            schema["required"] = list(REQUIRED_MEMBERS)
        return
    for each in node.values():
        _add_examples(each)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter without null: an optional parameter is omitted, never null."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) != 1:
        return schema
    rest = {name: each for name, each in schema.items() if name not in {"anyOf", "default"}}
    return {**options[0], **rest}
