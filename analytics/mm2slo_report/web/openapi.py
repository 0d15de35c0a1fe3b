"""OpenAPI's document of the service, with examples, and schemas drawn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi

from mm2slo_report.web.describing import EXAMPLE

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


def schema_of(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """What documents like *value* have in common: its names, and the types of what is known."""
    if isinstance(value, dict):
        return {
            "type": ["object", "null"],
            "properties": {name: schema_of(each) for name, each in value.items()},
        }
    if isinstance(value, list):
        found: dict[str, Any] = {"type": "array"}
        return {**found, "items": schema_of(value[0])} if value else found
    for kind, name in ((bool, "boolean"), (int, "number"), (float, "number"), (str, "string")):
        if isinstance(value, kind):
            return {"type": [name, "null"]}
    return {}


def _fill(made: Any) -> None:  # noqa: ANN401 - any JSON value
    """Put examples and schemas where the routes name them."""
    # Made of figures that nobody needs before the document.
    from mm2slo_report.web.examples import examples  # noqa: PLC0415

    if isinstance(made, list):
        for each in made:
            _fill(each)
    if not isinstance(made, dict):
        return
    name = made.pop(EXAMPLE, None)
    if name is not None:
        example = examples()[name]
        made["schema"] = schema_of(example)
        made["example"] = example
        return
    for each in made.values():
        _fill(each)
