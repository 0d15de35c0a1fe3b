"""`report:`, the report service."""

import re
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator

from mm2slo_core.config.durations import Duration, DurationBound
from mm2slo_core.config.exporter_config import Listen, LogConfig, parse_listen
from mm2slo_core.config.field_types import Section, Text, Whole
from mm2slo_core.config.invalid_value import InvalidValueError
from mm2slo_core.config.text_fields import Address, FilePath

_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)


def _zone(value: str) -> str:
    try:
        # ZoneInfo reads the name as a path of the time zone database.
        known = _ZONE.fullmatch(value) is not None and ZoneInfo(value).key == value
    except (OSError, LookupError, ValueError):
        known = False
    if not known:
        raise InvalidValueError(
            "is not a time zone",
            expected="an IANA time zone name, such as Europe/Berlin or UTC",
        )
    return value


Zone = Annotated[str, AfterValidator(_zone)]


class TlsFiles(Section):
    """A certificate and its key, in PEM format; a change applies to the next connection."""

    cert_file: FilePath
    """Certificate with its chain."""
    key_file: FilePath
    """Unencrypted key."""


class PrometheusConfig(Section):
    """A Prometheus that scrapes the exporters, as the source of history."""

    url: Address
    """Base URL."""
    token_file: FilePath | None = None
    """File with a bearer token; null: none."""
    ca_file: FilePath | None = None
    """CA certificates to trust; null: those of the system."""
    timeout: Duration = 10.0
    """Timeout of a request."""


class RecorderConfig(Section):
    """The embedded history, used without `report.prometheus`."""

    exporters: tuple[Address, ...] = ()
    """Base URLs of the exporters, replicas or exporters of different flows; empty: that of
    `exporter.listen`. Failover readiness is read from them as well."""
    token_file: FilePath | None = None
    """File with a bearer token for the exporters; null: none."""
    ca_file: FilePath | None = None
    """CA certificates to trust; null: those of the system."""
    interval: Annotated[float, BeforeValidator(DurationBound(1.0, at_most=60.0))] = 15.0
    """Scrape interval, up to `1m`: a step of the history has five minutes."""


class ReportConfig(Section):
    """The report service: listen address, access, and source of history."""

    listen: Annotated[
        Listen, PlainValidator(parse_listen), PlainSerializer(str, return_type=str)
    ] = Listen("127.0.0.1", 9470)
    """Listen address of the API and the page."""
    tls: TlsFiles | None = None
    """Certificate and key; null: plain HTTP."""
    tokens_file: FilePath | None = None
    """File with one line `<SHA-256 of a token, hex> <read or write> <name>` per token, or
    `read:us->eu` for some flows only. Changes take effect within a second. Null: everyone may read
    and no one may write, on loopback only."""
    hosts: tuple[Text, ...] = ()
    """Accepted host names, in addition to loopback names, that of `listen` and that of
    `alerting.links.report`."""
    zone: Zone = "UTC"
    """IANA time zone of days, months and quarters."""
    reports_per_minute: Annotated[Whole, Field(ge=1)] = 60
    """Limit of computed responses per client; cached responses do not count."""
    prometheus: PrometheusConfig | None = None
    """The source of history; null: the embedded history."""
    recorder: RecorderConfig = RecorderConfig()
    """The embedded history."""
    log: LogConfig = LogConfig()
    """Logging of the service."""
