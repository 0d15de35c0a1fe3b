"""`mm2slo logship`: ships log files to Splunk.

The section `logship:` of mm2slo.yaml becomes the settings of a shipper.
"""

import itertools
import logging
import os
import re
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import orjson
import prometheus_client
import typer

from mm2slo_cli.config_files import load_source, log_findings, read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.main import new_app
from mm2slo_cli.service_process import log_to_file, notify_ready
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import Listen
from mm2slo_core.config.logship_config import LogFileFormat, LogshipConfig, LogSource
from mm2slo_core.log_redaction import Redactor, SecretPattern
from mm2slo_core.user_errors import UserError
from mm2slo_exporter import log_output
from mm2slo_logship.event_delivery import ShipMetrics
from mm2slo_logship.hec_client import Connection, HecClient, HecTokenFile
from mm2slo_logship.hec_protocol import AnswerAction, envelope, envelope_start
from mm2slo_logship.log_events import Parser, ParserSettings, connector_flows
from mm2slo_logship.log_files import (
    FoundFile,
    Source,
    digest,
    open_content,
    path_text,
    reason_text,
)
from mm2slo_logship.ship_state import Checkpoints, DeadLetters, FileCheckpoint
from mm2slo_logship.shipper import Shipper, ShipSettings
from mm2slo_logship.tailed_file import TailedFile

logger = logging.getLogger(__name__)

logship_app = new_app(name="logship", no_args_is_help=True)
dead_letter_app = new_app(name="dead-letter", no_args_is_help=True)
logship_app.add_typer(dead_letter_app, help="Events that Splunk rejected.")
_ACCEPTED = (AnswerAction.ACCEPTED, AnswerAction.SLOW_DOWN)


@logship_app.callback()
def about() -> None:
    """Ship log files to the HTTP Event Collector of Splunk.

    Without a command, `run` with its options: mm2slo logship --config mm2slo.yaml
    """


@logship_app.command()
@config_options()
def run(source: ConfigSource) -> None:
    """Ship until SIGINT or SIGTERM."""
    config, findings = load_source(source)
    settings = ship_settings(config)
    section = settings.section
    log_output.configure_logging(section.log, "mm2slo-logship")
    log_to_file("mm2slo-logship")
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    log_findings(findings)
    if section.insecure_skip_verify or section.insecure_plain_http:
        logger.warning("TLS is not verified or not used; the token can be read on the network")
    metrics = ShipMetrics()
    shipper = Shipper(settings, metrics)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: shipper.request_stop())
    # The token is read again when Splunk rejects it, so a reload has nothing to do.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    shipper.start()
    try:
        _serve(metrics, section.listen)
        logger.info("shipping to %s", ", ".join(section.endpoints))
        notify_ready()
        while shipper.wait(1.0):
            pass
        logger.info("stopping")
    finally:
        shipper.stop()


@logship_app.command()
@config_options()
def check(source: ConfigSource) -> None:
    """Check the token, TLS and each index with an event; exits with 1 if one fails."""
    settings = _settings(source)
    token = HecTokenFile(Path(settings.section.token_file))
    problems = [advice] if (advice := token.advice()) else []
    event = {"message": "mm2slo logship check", "level": "INFO", "event_action": "logship_check"}
    for url, each in itertools.product(settings.section.endpoints, _by_index(settings)):
        start = envelope_start(
            host=each.host, source="mm2slo logship", sourcetype="repl:logship:json",
            index=each.index,
        )  # fmt: skip
        client = HecClient(url, token, settings.connection, settings.version)
        answer = client.send(envelope(start, time.time(), event))
        is_accepted = answer.action in _ACCEPTED
        typer.echo(f"{url}, index {each.index or 'of the token'}: {answer}")
        problems += [] if is_accepted else [f"{url} does not accept events: {answer}"]
    for each in settings.sources:
        count = sum(1 for _ in each.find_files())
        typer.echo(f"{', '.join(each.patterns)}: {count} files")
        problems += [] if count else [f"no file matches {', '.join(each.patterns)}"]
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(1)


@logship_app.command()
@config_options()
def tail(
    source: ConfigSource,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Required: `run` is what sends.")
    ] = False,
    lines: Annotated[int, typer.Option(min=1, help="Events per file.")] = 10,
) -> None:
    """Print the first events of each file as they would be sent, and send nothing."""
    if not dry_run:
        raise UserError("tail prints what would be sent; add --dry-run, or use mm2slo logship run")
    settings = _settings(source)
    for each in settings.sources:
        for found in each.find_files():
            try:
                for body in itertools.islice(_envelopes(each, found), lines):
                    typer.echo(body, nl=False)
            except (OSError, EOFError) as error:  # a folder, or a gzip file that is cut
                text = f"cannot read {path_text(found.path)}: {reason_text(error)}"
                typer.echo(text, err=True)


@dead_letter_app.command("list")
@config_options()
def list_dead_letters(source: ConfigSource) -> None:
    """Print rejected events with the reason, as JSON lines."""
    for letter in _dead_letters(_settings(source)):
        document = {
            "at": letter.at, "reason": letter.reason, "envelope": letter.envelope.decode()
        }  # fmt: skip
        typer.echo(orjson.dumps(document))


@dead_letter_app.command()
@config_options()
def replay(source: ConfigSource) -> None:
    """Send rejected events again; those that are rejected again are kept."""
    settings = _settings(source)
    letters = _dead_letters(settings)
    token = HecTokenFile(Path(settings.section.token_file))
    clients = [
        HecClient(url, token, settings.connection, settings.version)
        for url in settings.section.endpoints
    ]
    sent = 0

    def send(envelope: bytes) -> bool:
        nonlocal sent
        is_accepted = _send_again(clients, envelope)
        sent += is_accepted
        return is_accepted

    try:
        letters.replay(send)
    finally:
        kept = sum(1 for _ in letters)
        typer.echo(f"{sent} events accepted, {kept} kept")
    if kept:
        raise typer.Exit(1)


def _send_again(clients: list[HecClient], envelope: bytes) -> bool:
    """Whether an endpoint accepts *envelope*. Raises UserError if none can be used."""
    for _ in clients:
        answer = clients[0].send(envelope)
        if answer.action not in {AnswerAction.RETRY, AnswerAction.HOLD}:
            return answer.action in _ACCEPTED
        clients.append(clients.pop(0))  # the next event starts with the endpoint that answered
    raise UserError(f"Splunk accepts no events: {answer}; run replay again when it does")


@logship_app.command()
@config_options()
def offsets(source: ConfigSource) -> None:
    """Print up to where each file has been accepted."""
    for each in Checkpoints(Path(_settings(source).section.state_dir)):
        state = "done" if each.is_done else f"{max(each.size - each.offset, 0)} bytes unsent"
        typer.echo(f"{each.path}: offset {each.offset}, {state}")


def _settings(source: ConfigSource) -> ShipSettings:
    return ship_settings(read_config(source))


def _dead_letters(settings: ShipSettings) -> DeadLetters:
    folder = Path(settings.section.state_dir) / "dead-letters"
    return DeadLetters(folder, settings.section.max_dead_letter_bytes)


def _by_index(settings: ShipSettings) -> list[Source]:
    return list({each.index: each for each in settings.sources}.values())


def _envelopes(source: Source, found: FoundFile) -> Iterator[bytes]:
    with closing(open_content(found.path)) as content:
        checkpoint = FileCheckpoint(
            file_id=digest(os.fsencode(found.path)), path=path_text(found.path),
            pattern=found.pattern, device=0, inode=0, head_length=0, head_hash=digest(b""),
        )  # fmt: skip
        file = TailedFile(found.path, source, content, checkpoint)
        file.rotated_at = 0.0  # complete as it is
        while True:
            position = file.position
            items = file.read(time.monotonic())
            yield from (item.body for item in items)
            if not items and file.position == position:
                return


def _serve(metrics: ShipMetrics, listen: Listen) -> None:
    prometheus_client.ProcessCollector(registry=metrics.registry)
    try:
        prometheus_client.start_http_server(
            listen.port, listen.host or "0.0.0.0", registry=metrics.registry  # noqa: S104 - as set
        )  # fmt: skip
    except OSError as error:
        raise UserError(
            f"cannot listen on logship.listen {str(listen)!r}: {error.strerror}; set a free port"
        ) from None


def ship_settings(config: Config) -> ShipSettings:
    """The settings of a shipper. Raises UserError without the section or a file of it."""
    section = config.logship
    if section is None:
        raise UserError(
            "the configuration has no section logship; expected endpoints, token_file and sources "
            "(see docs/logship.md)"
        )
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
        redactor=Redactor(extra, [HecTokenFile(Path(section.token_file)).reveal()]),
    )
    return ShipSettings(
        section=section,
        sources=tuple(_source(each, section, parsing) for each in section.sources),
        connection=_connection(section),
        version=version("mm2slo"),
        redactions=parsing.redactor.counts,
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
