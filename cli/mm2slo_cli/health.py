"""`mm2slo health`: whether a service answers, for container engines."""

import ssl
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Final

from mm2slo_cli.config_files import load_source
from mm2slo_cli.config_options import ConfigSource
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import Listen
from mm2slo_core.user_errors import UserError

_SERVICES: Final = ("exporter", "report", "logship")
_TIMEOUT: Final = 5.0


class UnhealthyError(UserError):
    """The service does not answer."""

    exit_code = 1


def run(source: ConfigSource, service: str) -> None:
    """Request `/healthz` of *service* on this machine. Raises UnhealthyError, UserError."""
    if service not in _SERVICES:
        raise UserError(f"unknown service {service!r}; expected one of {', '.join(_SERVICES)}")
    config = load_source(source)[0]
    section = getattr(config, service)
    if section is None:
        raise UserError(f"the configuration has no section {service}")
    listen = section.listen.local
    try:
        status = _status(listen, is_tls=_is_tls(config, service))
    except (OSError, HTTPException) as error:
        raise UnhealthyError(f"{service} at {listen} does not answer: {error}") from None
    if status != HTTPStatus.OK:
        raise UnhealthyError(f"{service} at {listen} answered /healthz with {status}")


def _status(listen: Listen, *, is_tls: bool) -> int:
    connection = HTTPConnection(listen.host, listen.port, timeout=_TIMEOUT)
    if is_tls:
        context = ssl.create_default_context()
        # The certificate names the host that clients connect to, not the loopback address.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = HTTPSConnection(listen.host, listen.port, timeout=_TIMEOUT, context=context)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


def _is_tls(config: Config, service: str) -> bool:
    if service == "report":
        return config.report.tls is not None
    if service == "logship" or config.exporter.web_config_file is None:
        return False
    from mm2slo_web.access_files import web_config_file

    return web_config_file(Path(config.exporter.web_config_file)).current().tls is not None
