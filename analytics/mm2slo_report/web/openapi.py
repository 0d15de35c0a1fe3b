"""OpenAPI's document of the service, with examples, and schemas drawn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi

from mm2slo_report.web.describing import EXAMPLE, PROBLEM_EXAMPLE
from mm2slo_report.web.problems import ALWAYS_TOLD

if TYPE_CHECKING:
    from fastapi import FastAPI

_ABOUT: Final = """\
Service-level objectives of MirrorMaker 2's flows. Every answer is about one instant (`as_of`, a
whole minute). Figures are neither rounded nor clamped; null is "not known" or "does not apply",
never zero. Times are RFC 3339 in UTC, lengths seconds, shares ratios of 1.
"""
_SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Where tokens are configured."},
    "basic": {"type": "http", "scheme": "basic", "description": "The token as password; to read."},
}

_MAPS: Final = frozenset({"faults", "versions"})
"""Objects whose names are figures, too."""


def document(app: FastAPI, version: str) -> dict[str, Any]:
    """The document; made when it is first asked for."""
    if not app.openapi_schema:
        made = get_openapi(
            title="mm2slo report", version=version, description=_ABOUT, routes=app.routes
        )
        made.setdefault("components", {})["securitySchemes"] = _SECURITY
        made["security"] = [{}, {"bearer": []}, {"basic": []}]
        _fill(made)
        app.openapi_schema = made
    return app.openapi_schema


def schema_of(value: Any, name: str = "") -> dict[str, Any]:
    """What documents like *value*, called *name*, have in common: names, and types of the known.

    What is not known is null, and there all the same; it is left out of nothing.
    """
    if isinstance(value, dict) and name in _MAPS:
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
    for kind, word in ((bool, "boolean"), (int, "number"), (float, "number"), (str, "string")):
        if isinstance(value, kind):
            return {"type": [word, "null"]}
    return {}


def _fill(made: Any) -> None:
    """Put examples and schemas where the routes name them; simplify those of parameters."""
    # Made of figures that nobody needs before the document.
    from mm2slo_report.web.examples import examples

    if isinstance(made, list):
        for each in made:
            _fill(each)
    if not isinstance(made, dict):
        return
    if "in" in made and "schema" in made:
        made["schema"] = _given(made["schema"])
    name = made.pop(EXAMPLE, None)
    if name is not None:
        made["example"] = examples()[name]
        schema = made.setdefault("schema", schema_of(made["example"]))
        if name == PROBLEM_EXAMPLE:
            # Other members tell more of some of them.
            schema["required"] = list(ALWAYS_TOLD)
        return
    for each in made.values():
        _fill(each)


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter that is given: one that is not is left out, never null."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) != 1:
        return schema
    rest = {name: each for name, each in schema.items() if name not in {"anyOf", "default"}}
    return {**options[0], **rest}
