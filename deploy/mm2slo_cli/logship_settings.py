"""`logship:` of mm2slo.yaml as the settings of a shipper."""

from __future__ import annotations

import re
import socket
import ssl
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from mm2slo_core.config.logship_config import LogFileFormat
from mm2slo_core.redaction import Redactor
from mm2slo_core.secret_patterns import SecretPattern
from mm2slo_core.user_errors import UserError
from mm2slo_logship.events.connector_flows import connector_flows
from mm2slo_logship.events.parser_settings import ParserSettings
from mm2slo_logship.events.parsing import Parser
from mm2slo_logship.files.source import Source
from mm2slo_logship.hec.hec_client import Connection
from mm2slo_logship.hec.token_file import Token
from mm2slo_logship.ship_settings import ShipSettings

if TYPE_CHECKING:
    from mm2slo_core.config import Config
    from mm2slo_core.config.logship_config import LogshipConfig, LogSource


def logship_config(config: Config) -> LogshipConfig:
    """The section. Raises UserError if the file has none."""
    if config.logship is None:
        raise UserError(
            "the configuration has no section logship; expected endpoints, token_file and sources "
            "(see docs/logship.md)"
        )
    return config.logship


def ship_settings(config: Config) -> ShipSettings:
    """The settings of a shipper. Raises UserError when a file cannot be read."""
    section = logship_config(config)
    token_file = Path(section.token_file)
    extra = [
        SecretPattern(
            each.name,
            tuple(re.sub(r"[._-]", "", literal.lower()) for literal in each.literals),
            re.compile(each.regex, re.IGNORECASE | re.ASCII),
        )
        for each in section.redact
    ]
    connectors = connector_flows(
        (name, flow.label)
        for flow in config.flows
        for name in (
            flow.connect.source_connector,
            flow.connect.checkpoint_connector,
            flow.connect.heartbeat_connector,
        )
    )
    parsing = ParserSettings(
        env=section.env or "",
        flows=frozenset(flow.label for flow in config.flows),
        connector_flows=connectors,
        redactor=Redactor(extra, [Token(token_file).reveal()]),
    )
    return ShipSettings(
        endpoints=section.endpoints,
        token_file=token_file,
        sources=tuple(_source(each, section, parsing) for each in section.sources),
        state_dir=Path(section.state_dir),
        connection=_connection(section),
        version=version("mm2slo"),
        redactions=parsing.redactor.counts,
        has_ack=section.acknowledge,
        linger=section.linger,
        max_dead_letter_bytes=section.max_dead_letter_bytes,
        max_deleted_bytes=section.max_deleted_bytes,
    )


def _source(source: LogSource, section: LogshipConfig, parsing: ParserSettings) -> Source:
    settings = replace(
        parsing,
        service=source.service,
        flow=source.flow or "",
        time_zone=ZoneInfo(source.zone),
    )
    return Source(
        patterns=source.paths,
        new_parser=lambda: Parser(settings),
        host=section.host or socket.gethostname(),
        sourcetype=source.sourcetype,
        index=source.index or section.index,
        is_cri=source.format is LogFileFormat.CRI,
    )


def _connection(section: LogshipConfig) -> Connection:
    if not any(url.startswith("https:") for url in section.endpoints):
        return Connection(proxy=section.proxy)
    try:
        context = ssl.create_default_context(cafile=section.ca_file)
        if section.client is not None:
            context.load_cert_chain(section.client.cert_file, section.client.key_file)
    except (OSError, ssl.SSLError) as error:
        raise UserError(
            f"cannot use logship.ca_file or logship.client: {error}; expected PEM files"
        ) from None
    if section.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return Connection(tls=context, server_hostname=section.server_hostname, proxy=section.proxy)
