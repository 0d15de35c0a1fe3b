"""`mm2slo lint`: finds mistakes and risks in MirrorMaker 2's configuration."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from mm2slo_cli import mirror_config_files as mm2
from mm2slo_cli.main import new_app
from mm2slo_cli.mirror_config_files import mirror_files, name_by_form, read_setups
from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_loader import BaseConfig
from mm2slo_core.mm2_config.config_overlay import combine_setups
from mm2slo_core.mm2_config.lint_check_list import lint
from mm2slo_core.mm2_config.lint_checks import ClusterFacts
from mm2slo_core.mm2_config.mirror_setup import Finding, FindingSeverity
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError

lint_app = new_app()
_EXIT_CODES = {FindingSeverity.ERROR: 2, FindingSeverity.WARNING: 1, FindingSeverity.INFO: 0}
_TOPIC_SETTINGS = ("cleanup.policy", "max.message.bytes", "retention.bytes", "retention.ms")


@lint_app.command(no_args_is_help=True)
def run(
    files: mm2.Files,
    *,
    worker: mm2.Worker = None,
    secrets: mm2.Secrets = None,
    path: mm2.Paths = None,
    kafka_version: mm2.Version = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also check against the clusters; writes nothing.")
    ] = False,
    as_json: mm2.AsJson = False,
) -> None:
    """Find mistakes and risks in MirrorMaker 2's configuration; docs/lint.md lists the checks.

    Exit code: 2 with errors, 1 with warnings, otherwise 0.

    Example: mm2slo lint mm2.properties --kafka-version 4.1
    """
    named = name_by_form([*files, *filter(None, [worker])], secrets=secrets, paths=path)
    setups, unread = read_setups(named)
    title = ", ".join(map(str, files))
    if unread:
        raise ConfigError(title, unread)
    combined = combine_setups(setups, mirror_files(named), {}, kafka_version)
    facts = dict(_read_clusters(combined[0], title)) if connect else {}
    findings = lint(setups, combined, datetime.now(UTC), facts, kafka_version)
    if as_json:
        shown = [asdict(each.origin) | asdict(each) for each in findings]
        for each in shown:
            del each["origin"]
        typer.echo(json.dumps({"findings": shown}, indent=2))
    else:
        is_stated = kafka_version or all(each.kafka_version for each in setups)
        _print(findings, "" if is_stated else f"; by the rules of {mm2.NEWEST}")
    raise typer.Exit(max((_EXIT_CODES[each.severity] for each in findings), default=0))


def _read_clusters(base: BaseConfig, title: str) -> Iterator[tuple[str, ClusterFacts]]:
    for alias, properties in mm2.connections(base, title, base.clusters).items():
        try:
            with ClusterClient(alias, properties) as client:
                topics = client.topics()
                read = client.topic_configs(topics.partition_counts, defaults_of=_TOPIC_SETTINGS)
        except KafkaOperationError as error:
            raise UserError(str(error)) from None
        settings = {
            topic: {key: entry.value for key, entry in each.items() if entry.value is not None}
            for topic, each in read.configs.items()
        }
        yield (
            alias,
            ClusterFacts(topics.broker_count, topics.partition_counts, settings, topics.cluster_id),
        )


def _print(findings: Sequence[Finding], rules: str) -> None:
    blocks: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for each in findings:
        head = f"{each.origin}: {each.severity}: {each.what} [{each.check}]"
        blocks[each.check, each.why, each.action].append(head)
    for (_, why, action), heads in blocks.items():
        for text in (*heads, f"  why: {why}", f"  do:  {action}"):
            typer.echo(mm2.wrapped(text, hanging=" " * 7))
    counts = (f"{sum(e.severity is each for e in findings)} {each}" for each in FindingSeverity)
    typer.echo(f"{len(findings)} findings: {', '.join(counts)}{rules}")
