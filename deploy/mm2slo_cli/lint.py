"""`mm2slo lint`: finds mistakes and risks in MirrorMaker 2's configuration."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from mm2slo_cli.config_files import path_pair
from mm2slo_cli.mirror_files import mirror_files, name_by_form, read_mirror_files, read_setups
from mm2slo_core.config import ClusterConfig, ConfigError, MirrorFilesConfig
from mm2slo_core.mm2_config.connector_keys import kafka_release
from mm2slo_core.mm2_config.findings import Finding, Severity
from mm2slo_core.mm2_config.lint.check_list import lint
from mm2slo_core.mm2_config.lint.lint_input import ClusterFacts
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError

lint_app = typer.Typer(
    name="lint",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
_EXIT_CODES = {Severity.ERROR: 2, Severity.WARNING: 1, Severity.INFO: 0}
_TOPIC_SETTINGS = ("cleanup.policy", "max.message.bytes", "retention.bytes", "retention.ms")


def _option(metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text)


@lint_app.command(no_args_is_help=True)
def run(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files of MirrorMaker 2, in any form.")
    ],
    *,
    worker: Annotated[Path | None, _option("FILE", "Properties file of Connect workers.")] = None,
    secrets: Annotated[Path | None, _option("DIR", "Secrets, as files <secret>/<key>.")] = None,
    path: Annotated[
        list[str] | None, _option("FROM=TO", "Where MirrorMaker 2's files are here; repeatable.")
    ] = None,
    kafka_version: Annotated[
        str | None, _option("VERSION", "MirrorMaker 2's version, such as 4.1.")
    ] = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also check against the clusters; writes nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find mistakes and risks in MirrorMaker 2's configuration; docs/lint.md lists the checks.

    Exit code: 2 with errors, 1 with warnings, otherwise 0.

    Example: mm2slo lint mm2.properties --kafka-version 4.1
    """
    if kafka_version and kafka_release(kafka_version) is None:
        raise UserError(f"--kafka-version {kafka_version!r} is not a version; expected 4.1, say")
    given = {"secrets": secrets and str(secrets), "paths": dict(map(path_pair, path or ()))}
    named = name_by_form([*files, *filter(None, [worker])]).model_copy(
        update=given | {"kafka_version": kafka_version}
    )
    setups, unread = read_setups(named)
    if unread:
        raise ConfigError(", ".join(map(str, files)), unread)
    facts = dict(_read_clusters(named)) if connect else {}
    findings = lint(setups, mirror_files(named), datetime.now(UTC), facts, kafka_version)
    if as_json:
        shown = [asdict(each.origin) | asdict(each) for each in findings]
        for each in shown:
            del each["origin"]
        typer.echo(json.dumps({"findings": shown}, indent=2))
    else:
        _print(findings)
    raise typer.Exit(max((_EXIT_CODES[each.severity] for each in findings), default=0))


def _read_clusters(named: MirrorFilesConfig) -> Iterator[tuple[str, ClusterFacts]]:
    base, _ = read_mirror_files(named, {})
    for alias, section in base.clusters.items():
        try:
            # Security that cannot be read is absent, and must not become the default.
            config = ClusterConfig.model_validate({"security": None, **section})
            with ClusterClient(alias, config.librdkafka_properties()) as client:
                topics = client.topics()
                read = client.topic_configs(topics.partition_counts, defaults_of=_TOPIC_SETTINGS)
        except ValidationError:
            what = f"the connection to {alias} is incomplete"
            raise UserError(f"{what}; mm2slo lint without --connect reports why") from None
        except KafkaOperationError as error:
            raise UserError(str(error)) from None
        settings = {
            topic: {key: entry.value for key, entry in each.items() if entry.value is not None}
            for topic, each in read.configs.items()
        }
        yield alias, ClusterFacts(topics.broker_count, topics.partition_counts, settings)


def _print(findings: Sequence[Finding]) -> None:
    for each in findings:
        head = f"{each.origin}: {each.severity}: {each.what} [{each.check}]"
        for label, text in (("", head), ("  why: ", each.why), ("  do:  ", each.action)):
            # Values of files may have control characters.
            printable = "".join(c if c.isprintable() else " " for c in label + text)
            lines = textwrap.wrap(printable, 80, subsequent_indent=" " * 7, break_on_hyphens=False)
            typer.echo("\n".join(lines))
    counts = (f"{sum(e.severity is each for e in findings)} {each}" for each in Severity)
    typer.echo(f"{len(findings)} findings: {', '.join(counts)}")
