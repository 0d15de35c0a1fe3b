"""A loaded web configuration file as a `WebConfig`, or one report of all that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ValidationError

from mm2slo_core.config.config_problems import ConfigError, Path, Problem, render_path
from mm2slo_core.config.pydantic_errors import reason_of
from mm2slo_web.web_config import HttpServerConfig, TlsServerConfig, WebConfig

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
    "rate_limit": "the number of connections is limited",
    "auth_excluded_paths": "/healthz and /readyz are always open",
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
    next_step: str | None
    if error["type"] == "extra_forbidden":
        section = _SECTIONS.get(path[:-1])
        next_step = _UNSUPPORTED.get(str(path[-1]))
        what = "is not supported" if next_step else "unknown key"
        expected = f"one of {', '.join(section.model_fields) if section else 'no key here'}"
    elif error["type"] == "missing":
        what, expected, next_step = "is missing", "a value for this key", None
    else:
        what, expected, next_step = reason_of(error)
    return Problem(render_path(path), what, expected, next_step, line_of(path))
