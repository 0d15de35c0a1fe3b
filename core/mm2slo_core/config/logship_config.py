"""`logship:`, shipping of log files to Splunk."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from mm2slo_core.config.config_section import Section, SectionFinding
from mm2slo_core.config.exporter_settings import Listen
from mm2slo_core.config.field_types import (
    Address,
    Duration,
    FilePath,
    Flag,
    Text,
    Whole,
    may_carry_secrets,
)
from mm2slo_core.config.service_config import ListenAddress, LogConfig, TlsFiles, Zone
from mm2slo_core.quantity_text import InvalidValueError


class LogFileFormat(StrEnum):
    """Who writes the lines."""

    PLAIN = "plain"
    CRI = "cri"


def _regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise InvalidValueError(
            f"cannot be used: {error}", expected="a regular expression of Python"
        ) from None
    return value


class Redaction(Section):
    """A secret that is redacted in addition to the known ones."""

    name: Text
    """Value of the label `pattern`."""
    regex: Annotated[str, AfterValidator(_regex)]
    """Python regular expression; each match is replaced as a whole."""
    literals: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Texts of which each match contains one, in any case; other lines are not searched."""


class LogSource(Section):
    """Log files of one kind."""

    paths: Annotated[tuple[FilePath, ...], Field(min_length=1)]
    """Files, or patterns with `*`, `?` and `**`."""
    format: LogFileFormat = LogFileFormat.PLAIN
    """`cri`: container logs of Kubernetes, also rotated and compressed ones."""
    sourcetype: Text = "mm2:connect:json"
    """Sourcetype in Splunk."""
    index: Text | None = None
    """Index; null: `logship.index`."""
    service: Text = "mm2-worker"
    """Field `service` of events without one."""
    flow: Text | None = None
    """Flow of all lines; null: recognized per line."""
    zone: Zone = "UTC"
    """IANA time zone of times without one."""


LOGSHIP_EXAMPLES: Final = [
    {
        "endpoints": ["https://splunk.example:8088"],
        "token_file": "/run/secrets/splunk-hec-token",
        "sources": [{"paths": ["/var/log/kafka/mm2*.log"]}],
    }
]


class LogshipConfig(Section):
    """Shipping of log files to the HTTP Event Collector of Splunk."""

    endpoints: Annotated[tuple[Address, ...], Field(min_length=1)]
    """Base URLs, such as `https://splunk:8088`; used in turn, without those that fail."""
    token_file: FilePath
    """File with the token; read again when Splunk rejects it."""
    sources: Annotated[tuple[LogSource, ...], Field(min_length=1)]
    """Log files."""
    index: Text | None = None
    """Index of sources without one; null: that of the token."""
    env: Text | None = None
    """Field `env` of all events, such as `prod`."""
    host: Text | None = None
    """Field `host` of all events; null: the host name."""
    state_dir: FilePath = "mm2slo-logship"
    """Folder of checkpoints and dead letters."""
    acknowledge: Flag = False
    """Whether events count as sent only when they are indexed; the token must have `useACK`."""
    linger: Duration = 1.0
    """Time for which events are collected before they are sent."""
    redact: tuple[Redaction, ...] = Field(
        default=(),
        examples=[
            {
                "name": "internal-key",
                "regex": "internal-key-[0-9a-f]{16}",
                "literals": ["internal-key"],
            }
        ],
    )
    """Additional secrets to redact."""
    max_dead_letter_bytes: Annotated[Whole, Field(ge=1_000_000)] = 100_000_000
    """Limit of the rejected events on disk; the oldest are deleted above it."""
    max_deleted_bytes: Annotated[Whole, Field(ge=0)] = 1_000_000_000
    """Limit of unsent bytes in deleted files, which are kept open until they are sent."""
    ca_file: FilePath | None = None
    """CA certificates to trust; null: those of the system."""
    server_hostname: Text | None = None
    """Name in Splunk's certificate, if it is not that of the URL."""
    client: TlsFiles | None = None
    """Client certificate, as `report.tls`; null: none."""
    proxy: Address | None = None
    """HTTP proxy; variables such as HTTPS_PROXY have no effect."""
    insecure_skip_verify: Flag = False
    """Accept any certificate; anyone on the network could read the token."""
    insecure_plain_http: Flag = False
    """Allow http:// beyond this host; anyone on the network could read the token."""
    listen: ListenAddress = Listen("127.0.0.1", 9471)
    """Listen address of `/metrics`."""
    log: LogConfig = LogConfig()
    """Logging of the service."""

    def check(self) -> Iterator[SectionFinding]:
        """The token is not sent in clear text, and no file is shipped twice."""
        for position, url in enumerate(self.endpoints):
            if not may_carry_secrets(urlsplit(url)) and not self.insecure_plain_http:
                yield SectionFinding(
                    ("endpoints", position), f"{url!r} would send the token in clear text",
                    "https://, or http:// to 127.0.0.1",
                    "use https://, or set insecure_plain_http: true for tests",
                )  # fmt: skip
        seen: set[str] = set()
        for position, source in enumerate(self.sources):
            for path in source.paths:
                if path in seen:
                    yield SectionFinding(
                        ("sources", position, "paths"), f"{path!r} is in several sources",
                        "each file in one source",
                    )  # fmt: skip
                seen.add(path)
