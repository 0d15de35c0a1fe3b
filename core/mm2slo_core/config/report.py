"""`report:`, the service that answers for the objectives."""

import re
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator

from mm2slo_core.config.durations import Duration, SlowInterval
from mm2slo_core.config.exporter import Listen, LogConfig, parse_listen
from mm2slo_core.config.fields import Section, Text, Whole
from mm2slo_core.config.names import Address, FilePath
from mm2slo_core.config.refusal import Refusal

_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)


def _zone(value: str) -> str:
    try:
        # Names are looked up as paths of the database, which is a part of Python's installation.
        known = _ZONE.fullmatch(value) is not None and ZoneInfo(value).key == value
    except (OSError, LookupError, ValueError):
        known = False
    if not known:
        raise Refusal(
            "is no time zone",
            expected="a name of the IANA time zone database, as in Europe/Berlin or UTC",
        )
    return value


class TlsFiles(Section):
    """A certificate and its key, in PEM."""

    cert_file: FilePath = Field(description="Certificate, with those that it is signed by.")
    key_file: FilePath = Field(description="Its key, not encrypted.")


class PrometheusConfig(Section):
    """A Prometheus that scrapes the exporters: where the figures come from."""

    url: Address = Field(description="Its base address.")
    token_file: FilePath | None = Field(
        default=None, description="File with a bearer token to send; null: none."
    )
    ca_file: FilePath | None = Field(
        default=None, description="CA certificates it is trusted by; null: the system's."
    )
    timeout: Duration = Field(default=10.0, description="How long an answer may take.")


class RecorderConfig(Section):
    """The embedded history, used where no Prometheus is named."""

    exporters: tuple[Address, ...] = Field(
        default=(),
        description="Base addresses of the exporters, replicas of each other or of different "
        "flows; none: that of `exporter.listen`. Failover readiness is asked there, too.",
    )
    token_file: FilePath | None = Field(
        default=None, description="File with a bearer token to send to them; null: none."
    )
    ca_file: FilePath | None = Field(
        default=None, description="CA certificates they are trusted by; null: the system's."
    )
    interval: SlowInterval = Field(default=15.0, description="Time between two scrapes.")


class ReportConfig(Section):
    """The report service: where it listens, who may ask, where its figures come from."""

    listen: Annotated[
        Listen, PlainValidator(parse_listen), PlainSerializer(str, return_type=str)
    ] = Field(default=Listen("127.0.0.1", 9470), description="Address of `/slo` and the page.")
    tls: TlsFiles | None = Field(default=None, description="Null: plain HTTP.")
    tokens_file: FilePath | None = Field(
        default=None,
        description="File with a line `<SHA-256 of a token, hex> <read or write> <name>` for each "
        "token; a change holds within a second. Null: everyone may read, nobody may write, and "
        "only on loopback.",
    )
    hosts: tuple[Text, ...] = Field(
        default=(),
        description="Names by which it is called, besides loopback's, that of `listen` and that "
        "of `alerting.links.report`.",
    )
    zone: Annotated[str, AfterValidator(_zone)] = Field(
        default="UTC", description="IANA time zone of days, months and quarters."
    )
    reports_per_minute: Annotated[Whole, Field(ge=1)] = Field(
        default=60,
        description="Answers that must be worked out anew, for each caller; those kept from a "
        "moment ago do not count.",
    )
    prometheus: PrometheusConfig | None = Field(
        default=None, description="Null: the embedded history."
    )
    recorder: RecorderConfig = Field(
        default_factory=RecorderConfig, description="The embedded history."
    )
    log: LogConfig = Field(default_factory=LogConfig, description="The service's own log.")
