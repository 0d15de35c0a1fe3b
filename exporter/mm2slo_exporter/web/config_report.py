"""A loaded web configuration file as a `WebConfig`, or one report of all that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from mm2slo_core.config.config_problems import ConfigError, Path, Problem, render_path
from mm2slo_core.config.invalid_value import InvalidValueError
from mm2slo_exporter.web.config import (
    HttpServerConfig,
    TlsServerConfig,
    WebConfig,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_core import ErrorDetails

_SECTIONS: Final[dict[Path, type[BaseModel]]] = {
    (): WebConfig,
    ("tls_server_config",): TlsServerConfig,
    ("http_server_config",): HttpServerConfig,
}
_UNSUPPORTED: Final = {
    "cipher_suites": "OpenSSL's own choice is used",
    "curve_preferences": "OpenSSL's own choice is used",
    "prefer_server_cipher_suites": "OpenSSL's own choice is used",
    "cert": "write the certificate to a file and name it in cert_file",
    "key": "write the key to a file and name it in key_file",
    "client_ca": "write the certificate to a file and name it in client_ca_file",
}
_EXPECTED: Final = {
    "string_type": "text",
    "bool_type": "true or false",
    "model_type": "a mapping with keys",
    "mapping_type": "a mapping with keys",
    "tuple_type": "a list",
}


def parse_web_config(
    value: object, name: str, line_of: Callable[[Path], int | None] = lambda _: None
) -> WebConfig:
    """*value* as loaded from YAML; *name* is the file's and *line_of* finds a path's line.

    Raises ConfigError with every problem. No value is quoted: it may be a secret.
    """
    try:
        return WebConfig.model_validate({} if value is None else value)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False, include_input=False)
    raise ConfigError(name, [_problem(error, line_of) for error in errors])


def _problem(error: ErrorDetails, line_of: Callable[[Path], int | None]) -> Problem:
    path = tuple(part for part in error["loc"] if part != "[key]")
    what, expected, next_step = _describe(error, path)
    return Problem(render_path(path), what, expected, next_step, line_of(path))


def _describe(error: ErrorDetails, path: Path) -> tuple[str, str, str | None]:
    context: dict[str, Any] = error.get("ctx", {})
    raised = context.get("error")
    if isinstance(raised, InvalidValueError):
        return raised.what, raised.expected, raised.next_step
    if error["type"] == "extra_forbidden":
        section = _SECTIONS.get(path[:-1])
        known = ", ".join(section.model_fields) if section else "no key here"
        hint = _UNSUPPORTED.get(str(path[-1]))
        return ("is not supported" if hint else "unknown key"), f"one of {known}", hint
    if error["type"] == "missing":
        return "is missing", "a value for this key", None
    if error["type"] == "enum":
        return "is not one of the choices", str(context["expected"]), None
    return "is of the wrong type", _EXPECTED.get(error["type"], error["msg"]), None
