"""The OpenAPI document of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi

from mm2slo_report.web.problem_details import Problem

if TYPE_CHECKING:
    from fastapi import FastAPI

_DESCRIPTION: Final = """\
Service level objectives of MirrorMaker 2 flows. Every response is as of one instant (`as_of`, a
whole minute). Values are neither rounded nor clamped; null means unknown or not applicable, never
zero. Times are RFC 3339 in UTC; names of quantities end in their unit, such as `_seconds` and
`_ratio`, which is a share of 1.
"""
_SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "If tokens are configured."},
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "The token as password; read only.",
    },
}


def document(app: FastAPI, version: str) -> dict[str, Any]:
    """The document, built on first use."""
    if not app.openapi_schema:
        built = get_openapi(
            title="mm2slo report", version=version, description=_DESCRIPTION, routes=app.routes
        )
        built["components"]["securitySchemes"] = _SECURITY
        built["components"]["schemas"][Problem.__name__] = Problem.model_json_schema()
        built["security"] = [{}, {"bearer": []}, {"basic": []}]
        for methods in built["paths"].values():
            for operation in methods.values():
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _without_null(parameter["schema"])
        app.openapi_schema = built
    return app.openapi_schema


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter without null: an optional parameter is omitted, never null."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) != 1:
        return schema
    rest = {name: each for name, each in schema.items() if name not in {"anyOf", "default"}}
    return {**options[0], **rest}
