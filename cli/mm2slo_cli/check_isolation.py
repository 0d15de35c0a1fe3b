"""`mm2slo check --connect --as FILE --cannot-read PATTERN`: topics that a user must not read.

The user's client reads the start of each topic, as a consumer without a group does. Brokers require
Describe for metadata and ListOffsets, and Read for Fetch only (`KafkaApis`), so only a fetch proves
that Read is denied. A consumer never fetches a topic that its user may not describe.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import typer

from mm2slo_cli.check_connect import print_results
from mm2slo_cli.config_files import path_pair, read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.mirror_config_files import mirror_files
from mm2slo_core.config.client_security import librdkafka_properties
from mm2slo_core.config.config_model import Config, MirrorFilesConfig
from mm2slo_core.file_syntax import PropertiesError, parse_properties
from mm2slo_core.java_values import compile_java
from mm2slo_core.kafka_permissions import CheckResult, shorten_list
from mm2slo_core.mm2_config.config_overlay import read_security
from mm2slo_core.mm2_config.mirror_setup import Origin, Setting
from mm2slo_core.mm2_config.provider_references import read_providers, resolve_settings
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

_CHECK: Final = "cannot-read"
_SERVERS: Final = "bootstrap.servers"


def run(
    source: ConfigSource, *, as_json: bool, user_file: Path, pattern: str, aliases: Sequence[str]
) -> None:
    """Check *aliases*, or all. Exits with 1 if a topic can be read, with 2 if that is unknown."""
    try:
        topics = compile_java(pattern)
    except ValueError as error:
        raise UserError(f"--cannot-read: {error}") from None
    config = read_config(source)
    for alias in aliases:
        if alias not in config.clusters:
            expected = ", ".join(config.clusters)
            raise UserError(f"--cluster {alias!r} is not configured; expected one of {expected}")
    user = read_client_file(user_file, source)
    results = check_denied_reads(config, aliases or [*config.clusters], user, user_file, topics)
    print_results(results, as_json=as_json)
    states = {each.state for each in results}
    if states != {"ok"}:
        raise typer.Exit(1 if "fix" in states else 2)


def read_client_file(path: Path, source: ConfigSource) -> dict[str, str]:
    """Properties for librdkafka from the Java client's file *path*. Raises UserError."""
    try:
        # Kafka's `Utils.loadProps` has java.util.Properties read a stream, which is Latin-1.
        lines = list(parse_properties(path.read_text(encoding="latin-1")))
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except PropertiesError as error:
        raise UserError(f"{path}:{error.line} {error}") from None
    client = {
        each.key: Setting(each.key, each.value, Origin(str(path), each.number)) for each in lines
    }
    paths = dict(map(path_pair, source.path))
    secrets = None if source.secrets is None else str(source.secrets)
    files = mirror_files(MirrorFilesConfig(secrets=secrets, paths=paths))
    resolved, unresolved = resolve_settings(client, read_providers(client)[0], files)
    security, findings = read_security(resolved, files)
    problems = [str(each) for each in (*unresolved, *findings) if each.is_error]
    if security is None or problems:
        raise UserError("\n".join(problems))
    servers = {_SERVERS: resolved[_SERVERS].value} if _SERVERS in resolved else {}
    return librdkafka_properties(security) | servers


def check_denied_reads(
    config: Config,
    aliases: Sequence[str],
    user: Mapping[str, str],
    user_file: Path,
    topics: re.Pattern[str],
) -> list[CheckResult]:
    """A result for each cluster; only for that of the user's bootstrap servers, if it has some."""
    found, unread = [], []
    for alias in aliases:
        try:
            found.append(_check_cluster(config, alias, user, user_file.name, topics))
        except KafkaOperationError as problem:
            unread.append(_failure(alias, "the configured user", problem))
    results = [each for each in found if each is not None]
    if results and _SERVERS in user:
        return results
    if results or unread:
        return [*results, *unread]
    finding = f"{_SERVERS} of {user_file.name} is none of the clusters {', '.join(aliases)}"
    remedy = "correct it, or leave it out to use the servers of the configuration"
    return [CheckResult(user_file.name, _CHECK, "unknown", finding, remedy)]


def _failure(alias: str, who: str, problem: KafkaOperationError) -> CheckResult:
    finding = f"{who}: {problem.operation} failed: {problem.detail}"
    return CheckResult(alias, _CHECK, "unknown", finding, problem.next_step)


def _check_cluster(
    config: Config, alias: str, user: Mapping[str, str], name: str, topics: re.Pattern[str]
) -> CheckResult | None:
    """None if the user's servers are those of another cluster.

    Raises KafkaOperationError if the configured user cannot list topics.
    """
    cluster = config.clusters[alias]
    with ClusterClient(alias, cluster.librdkafka_properties()) as ours:
        listing = ours.topics()
    try:
        with ClusterClient(alias, {_SERVERS: cluster.bootstrap_servers, **user}) as theirs:
            if theirs.topics().cluster_id != listing.cluster_id:
                return None
            names = sorted(filter(topics.fullmatch, {*listing.partition_counts, *listing.errors}))
            failures = theirs.read_failures(names)
    except KafkaOperationError as problem:
        return _failure(alias, name, problem)
    return _judge(alias, name, topics.pattern, names, failures)


def _judge(
    alias: str, name: str, pattern: str, topics: list[str], failures: Mapping[str, ErrorKind]
) -> CheckResult:
    """*topics* are those that match; *failures* has those that could not be read."""
    result = CheckResult(alias, _CHECK, "unknown", "")
    if not topics:
        finding = f"not known whether {name} is refused: no topic matches {pattern!r}"
        remedy = "correct the expression, or grant the configured user Describe on the topics"
        return result._replace(finding=finding, remedy=remedy)
    matching = f"{len(topics)} topics that match" if len(topics) > 1 else "1 topic that matches"
    count = f"{matching} {pattern!r}"
    if readable := [each for each in topics if each not in failures]:
        finding = f"{name} can read {len(readable)} of {count}: {shorten_list(readable, 9)}"
        remedy = "remove the ACL that allows Read; kafka-acls.sh --list shows it"
        return result._replace(state="fix", finding=finding, remedy=remedy)
    if unknown := [each for each in topics if failures[each] is not ErrorKind.AUTHORIZATION]:
        kinds = ", ".join(sorted({failures[each] for each in unknown}))
        finding = f"no answer ({kinds}) to {name} for {len(unknown)} of {count}: "
        finding += shorten_list(unknown, 9)
        return result._replace(finding=finding, remedy="check the leaders of these topics; repeat")
    return result._replace(state="ok", finding=f"{name} is refused Read on {count}")
