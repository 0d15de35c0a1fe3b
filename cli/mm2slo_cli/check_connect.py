"""`mm2slo check --connect`: what to fix on the clusters before exporter and audit run."""

import json
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, replace

import typer
from rich.console import Console

from mm2slo_audit.scope.flow_topic_reader import commits_in_transactions, read_connectors
from mm2slo_cli.check import wide_table
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_core.cluster_writes import timeline_estimate
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.kafka_permissions import (
    SYNC_GROUP_OFFSETS,
    CheckResult,
    CheckState,
    FlowResources,
    RequiredAccess,
    Role,
    permission_result,
    reader_parity,
    required_access,
    shorten_list,
)
from mm2slo_core.mm2_config.flow_settings import setting_differences
from mm2slo_core.mm2_config.running_settings import (
    RunningConnectors,
    observed_flow,
    overridden_settings,
)
from mm2slo_core.replication_policy import InternalTopics
from mm2slo_core.topic_selection import TopicRole, replication_policy
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.flow_plan import FlowPolicies
from mm2slo_kafka.cluster_inspection import CLOCK_TOPIC, ClusterInspection
from mm2slo_kafka.connector_configs import ConnectorConfigs
from mm2slo_kafka.kafka_errors import KafkaOperationError

_MAX_CLOCK_OFFSET = 1.0


def run(
    source: ConfigSource, *, as_json: bool, principals: Sequence[str], allow_writes: bool
) -> None:
    """Check the clusters of *source*. Exits with 1 if there is something to fix."""
    config = read_config(source)
    counterparts = dict(map(_principal_pair, principals))
    clusters: dict[str, ClusterInspection] = {}
    results: list[CheckResult] = []
    for alias in sorted({alias for flow in config.flows for alias in astuple(flow.flow)}):
        try:
            properties = config.clusters[alias].librdkafka_properties()
            clusters[alias] = ClusterInspection(alias, properties)
        except KafkaOperationError as problem:
            results.append(_failure(alias, problem))
    # What one topic is needed for twice is one result.
    results += dict.fromkeys(diagnose(config, clusters, counterparts, allow_writes=allow_writes))
    print_results(results, as_json=as_json)
    if any(each.state == "fix" for each in results):
        raise typer.Exit(1)


def print_results(results: Sequence[CheckResult], *, as_json: bool) -> None:
    counts = Counter(each.state for each in results)
    if as_json:
        found = {"results": [each._asdict() for each in results], "counts": counts}
        Console(soft_wrap=True, highlight=False).print(json.dumps(found, indent=2), markup=False)
    else:
        _print_table(results, counts)


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


def _print_table(results: Sequence[CheckResult], counts: Mapping[CheckState, int]) -> None:
    console = Console()
    table = wide_table("Where", "State", "Finding and remedy")
    for each in results:
        remedy = f"\n-> {each.remedy}" if each.remedy else ""
        table.add_row(each.where, each.state, each.finding + remedy)
    console.print(table, markup=False, highlight=False)
    console.print(f"{counts['fix']} to fix, {counts['unknown']} unknown, {counts['ok']} ok")


_INTERNAL = {
    *(Role.HEARTBEATS, Role.OFFSET_SYNCS, Role.CHECKPOINTS, Role.OFFSETS, Role.CONFIGS),
    Role.STATES,
}


def check_flow(
    config: Config,
    flow: FlowConfig,
    clusters: Mapping[str, ClusterInspection],
    counterparts: Mapping[str, str],
) -> Iterator[CheckResult]:
    """All results of *flow*. Raises KafkaOperationError if a cluster stops answering."""
    source, target = flow.flow.source, flow.flow.target
    ids = {clusters[alias].cluster_id() for alias in (source, target)}
    if len(ids) == 1 and None not in ids:
        finding = f"{source} and {target} are one cluster, with the id {ids.pop()}"
        remedy = "use one alias for each cluster; MirrorMaker 2 copies its copies without end"
        yield CheckResult(flow.label, "one-cluster", "fix", finding, remedy)
    opposite = next((each for each in config.flows if each.flow == flow.flow.reverse), None)
    policies = FlowPolicies(flow, opposite)
    topics = {alias: clusters[alias].topics() for alias in (source, target)}
    pairs = policies.plan(topics[source]).pairs
    visible = {
        (source, Role.TOPICS): [pair.source for pair in pairs],
        (target, Role.TOPICS): [pair.target for pair in pairs if pair.target],
    }
    for alias in topics:
        groups = filter(policies.wants_group, clusters[alias].groups())
        visible[alias, Role.GROUPS] = list(groups)
    internal = _internal_topics(flow, policies) if flow.by_mirrormaker else None
    running = RunningConnectors()
    if internal is not None:
        configs = internal.connect_configs.topic
        own = _connectors(clusters[target], configs, topics[target])
        others = _connectors(clusters[source], policies.heartbeat_configs, topics[source])
        heartbeats = others.by_name.get(policies.heartbeat_connector)
        transactional = False
        with suppress(KafkaOperationError, TimeoutError):
            transactional = commits_in_transactions(flow, clusters[target].client, own)
        running = RunningConnectors(own.by_name, heartbeats, transactional)
    resources = FlowResources(
        flow.flow,
        replication_policy(flow),
        flow.topics,
        flow.groups,
        internal,
        frozenset({SYNC_GROUP_OFFSETS} if running.syncs_group_offsets else ()),
    ).written_by(config.exporter, flow.canary)
    yield from _access_results(resources, clusters, topics, visible)
    if config.exporter.writes_timeline:
        partitions = sum(topics[source][pair.source] for pair in pairs)
        written = timeline_estimate(partitions, len(pairs), config.exporter)
        yield CheckResult(flow.label, "timeline-size", "ok", written)
    if internal is not None:
        yield from _setting_results(flow, internal.connect_configs.topic, running)
    copies = {
        pair.source: pair.target for pair in pairs if pair.role is TopicRole.DATA and pair.target
    }
    yield from _reader_results(flow, clusters, copies, visible[source, Role.GROUPS], counterparts)


def _internal_topics(flow: FlowConfig, policies: FlowPolicies) -> InternalTopics:
    """The internal topics, with the names that the worker's configuration sets."""
    usual, connect = policies.internal, flow.connect
    names = {
        "connect_offsets": connect.offsets_topic,
        "connect_status": connect.status_topic,
        "connect_configs": connect.configs_topic,
    }
    placed = {key: getattr(usual, key)._replace(topic=name) for key, name in names.items() if name}
    return replace(usual, **placed)


def _access_results(
    resources: FlowResources,
    clusters: Mapping[str, ClusterInspection],
    topics: Mapping[str, Mapping[str, int]],
    visible: Mapping[tuple[str, Role], list[str]],
) -> Iterator[CheckResult]:
    """Permissions, MirrorMaker 2's internal topics, and the topics that mm2slo writes."""
    where, needed = resources.flow.label, list(required_access(resources, visible))
    missing, written, unborn = set(), [], set()
    for alias, existing in topics.items():
        here = [(row, accesses) for row, cluster, accesses in needed if cluster == alias]
        answers = clusters[alias].answers({each for _, accesses in here for each in accesses})
        for row, accesses in here:
            for each in accesses:
                if each.operation == "Write":
                    written.append(f"{each.name} on {alias}")
                if each.name in existing and each.operation == "Create":
                    answers[each] = True  # the exporter creates a topic only if it is missing
                elif (
                    each.name not in existing and row.role in _INTERNAL and answers.get(each, True)
                ):
                    missing.add(f"{each.name} on {alias}")
            # Clusters report nothing of a topic that does not exist.
            unknown = {each for each in accesses if each.kind == "topic"} - answers.keys()
            later = {each for each in unknown if each.name not in existing}
            unborn.update(later)
            rest = [each for each in accesses if each not in later]
            if rest or not later:
                yield permission_result(where, row, alias, rest, answers)
    if unborn:
        names = shorten_list(sorted({each.name for each in unborn}))
        finding = f"not known before these topics exist: access to {names}"
        remedy = "check again when MirrorMaker 2 and the exporter run"
        yield CheckResult(where, "permission", "unknown", finding, remedy)
    found = CheckResult(where, "internal-topics", "ok", "MirrorMaker 2's internal topics exist")
    if missing:
        finding = f"missing topics of MirrorMaker 2: {shorten_list(sorted(missing), 9)}"
        remedy = "start MirrorMaker 2; on Kafka Connect, set the names in flows[].connect"
        found = found._replace(state="fix", finding=finding, remedy=remedy)
    if resources.internal is not None:
        yield found
    what = f"mm2slo writes to {', '.join(written)}" if written else "mm2slo writes no topic"
    yield CheckResult(where, "written-topics", "ok", what)


def _connectors(
    cluster: ClusterInspection, topic: str, existing: Container[str]
) -> ConnectorConfigs:
    """The connectors in the configuration topic; none if it cannot be read."""
    read = RequiredAccess("topic", topic, "Read")
    if topic in existing and cluster.answers([read]).get(read, True):
        with suppress(TimeoutError):
            return read_connectors(cluster.client, topic)
    return ConnectorConfigs()


def _setting_results(
    flow: FlowConfig, topic: str, running: RunningConnectors
) -> Iterator[CheckResult]:
    ok = CheckResult(
        flow.label, "settings", "ok", "MirrorMaker 2 runs with the settings configured"
    )
    overridden = overridden_settings(flow, observed_flow(flow, running))
    differences = dict.fromkeys((*setting_differences(flow, running.by_name), *overridden))
    if flow.connect.source_connector not in running.by_name:
        finding = f"settings not compared: no {flow.connect.source_connector} in {topic}"
        remedy = "set source_connector and configs_topic in flows[].connect, or grant Read"
        yield ok._replace(state="unknown", finding=finding, remedy=remedy)
    elif differences:
        for field, configured, used in differences:
            finding = f"{field} is {configured!r}, but MirrorMaker 2 runs with {used!r}"
            remedy = f"set {field} of the flow, or change MirrorMaker 2"
            yield ok._replace(state="fix", finding=finding, remedy=remedy)
    else:
        yield ok


def _reader_results(
    flow: FlowConfig,
    clusters: Mapping[str, ClusterInspection],
    copies: Mapping[str, str],
    groups: list[str],
    counterparts: Mapping[str, str],
) -> Iterator[CheckResult]:
    source, target = flow.flow.source, flow.flow.target
    unknown = CheckResult(flow.label, "readers", "unknown", "readers not compared")
    try:
        rules = {alias: clusters[alias].client.acls() for alias in (source, target)}
    except KafkaOperationError as problem:
        remedy = f"{problem.operation} on {problem.cluster} failed: {problem.detail}"
        yield unknown._replace(remedy=remedy)
        return
    if not all(rules.values()):
        finding = "readers not compared: without ACLs on both clusters, who may read is not known"
        yield unknown._replace(finding=finding)
        return
    readers = reader_parity(rules[source], rules[target], copies, groups, counterparts)
    for principal, other, denied in readers:
        finding = f"{other} may read on {target} what {principal} may read on {source}"
        ok = CheckResult(flow.label, "readers", "ok", finding)
        if denied:
            finding = f"after a failover, {other} may not Read {shorten_list([*denied])}"
            remedy = f"grant it on {target}, or name another user: --principal {principal}=..."
            ok = ok._replace(state="fix", finding=finding, remedy=remedy)
        yield ok
