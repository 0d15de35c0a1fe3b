"""`mm2slo check --connect`: what to fix on the clusters before exporter and audit run."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_cli.config_files import read_config
from mm2slo_cli.flow_connection_checks import check_flow
from mm2slo_core.connection_checks.check_result import CheckResult, State
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_inspection import CLOCK_TOPIC, ClusterInspection
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_cli.config_options import ConfigSource
    from mm2slo_core.config import Config

_MAX_CLOCK_OFFSET = 1.0


def run(
    source: ConfigSource, *, as_json: bool, principals: Sequence[str], allow_writes: bool
) -> None:
    """Check the clusters of *source*. Exits with 1 if there is something to fix."""
    config = read_config(source)
    counterparts = dict(map(_principal_pair, principals))
    clusters: dict[str, ClusterInspection] = {}
    results: list[CheckResult] = []
    for alias in sorted(config.graph.clusters):
        try:
            properties = config.clusters[alias].librdkafka_properties()
            clusters[alias] = ClusterInspection(alias, properties)
        except KafkaOperationError as problem:
            results.append(_failure(alias, problem))
    results += diagnose(config, clusters, counterparts, allow_writes=allow_writes)
    counts = Counter(each.state for each in results)
    if as_json:
        found = {"results": [each._asdict() for each in results], "counts": counts}
        Console(soft_wrap=True, highlight=False).print(json.dumps(found, indent=2), markup=False)
    else:
        _print_table(results, counts)
    if counts["fix"]:
        raise typer.Exit(1)


def diagnose(
    config: Config,
    clusters: Mapping[str, ClusterInspection],
    counterparts: Mapping[str, str],
    *,
    allow_writes: bool,
) -> Iterator[CheckResult]:
    """All results, clusters first."""
    connected = set()
    for alias, cluster in clusters.items():
        servers = config.clusters[alias].bootstrap_servers.split(",")
        yield from (found := cluster.listeners(servers))
        if all(each.state == "fix" for each in found):
            continue
        try:
            brokers = cluster.brokers()
        except KafkaOperationError as problem:
            yield _failure(alias, problem)
            continue
        connected.add(alias)
        security = config.clusters[alias].security
        how = security.sasl.mechanism if security.sasl else security.protocol
        who = "1 broker accepts" if len(brokers) == 1 else f"{len(brokers)} brokers accept"
        yield CheckResult(alias, "authentication", "ok", f"{who} {how}")
        yield from cluster.listeners(each for each in brokers if each not in servers)
        yield _clock(alias, cluster, allow_writes=allow_writes)
    for flow in config.flows:
        source, target = flow.flow.source, flow.flow.target
        if not {source, target} <= connected:
            what = "not checked: a cluster cannot be reached"
            yield CheckResult(flow.label, "flow", "unknown", what)
            continue
        try:
            yield from check_flow(config, flow, clusters, counterparts)
        except KafkaOperationError as problem:
            yield _failure(flow.label, problem)


def _failure(where: str, problem: KafkaOperationError) -> CheckResult:
    finding = f"{problem.operation} failed: {problem.detail}"
    return CheckResult(where, problem.kind.value, "fix", finding, problem.next_step)


def _clock(alias: str, cluster: ClusterInspection, *, allow_writes: bool) -> CheckResult:
    finding = f"clock offset not measured; it needs records in {CLOCK_TOPIC}"
    unknown = CheckResult(alias, "clock", "unknown", finding, "allow them with --allow-writes")
    if not allow_writes:
        return unknown
    try:
        offset, uncertainty = cluster.clock_offset()
    except KafkaOperationError as problem:
        return unknown._replace(remedy=f"{problem.operation} failed: {problem.detail}")
    finding = f"clock is {offset:+.3f} s from this host's (uncertainty {uncertainty:.3f} s)"
    if abs(offset) - uncertainty > _MAX_CLOCK_OFFSET:
        return CheckResult(alias, "clock", "fix", finding, "synchronise the clocks (NTP)")
    return CheckResult(alias, "clock", "ok", finding)


def _principal_pair(text: str) -> tuple[str, str]:
    """`app=app-dr` as principals; names without a type are users."""
    source, sign, target = (part.strip() for part in text.partition("="))
    if not (source and sign and target):
        raise UserError(f"--principal {text!r} is not SOURCE=TARGET; expected app=app-dr")
    return f"User:{source.removeprefix('User:')}", f"User:{target.removeprefix('User:')}"


def _print_table(results: Sequence[CheckResult], counts: Mapping[State, int]) -> None:
    console = Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("Where", "State", "Finding and remedy"):
        table.add_column(heading, overflow="fold")
    for each in results:
        remedy = f"\n-> {each.remedy}" if each.remedy else ""
        table.add_row(each.where, each.state, each.finding + remedy)
    console.print(table, markup=False, highlight=False)
    console.print(f"{counts['fix']} to fix, {counts['unknown']} unknown, {counts['ok']} ok")
